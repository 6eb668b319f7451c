import { readFileSync, writeFileSync } from 'node:fs'
import { readMigrations, readReleased } from '#drizzle/released.ts'
import { runCommand } from '#lib/cli/process/command.ts'
import { print } from '#lib/cli/process/output.ts'
import { readVersion } from '#lib/config/version.ts'
import { makeData } from './make-data.ts'

const USAGE = `npm version major | minor | patch

npm sets the version in package.json, and this program does the rest of a release before npm commits and tags it: it
gives the changelog's unreleased part its heading, freezes new migrations in drizzle/released.json, names the version in
the Dockerfile and the examples, and writes the data of the version into tests/releases. See CONTRIBUTING.md.`

const UNRELEASED = '## [Unreleased]\n'

/** Replaces text in a file. @throws if the file does not contain it */
function replaceIn(file: string, before: RegExp | string, after: string): void {
  const text = readFileSync(file, 'utf8')
  if (typeof before === 'string' ? !text.includes(before) : !before.test(text)) {
    throw new Error(`${file} does not contain ${before}`)
  }
  writeFileSync(file, text.replace(before, after))
}

/** @throws if the changelog says nothing about the version */
function nameChanges(version: string, day: string): void {
  const [, unreleased = ''] = readFileSync('CHANGELOG.md', 'utf8').split(UNRELEASED)
  if (unreleased.split('\n## [')[0]?.trim() === '') throw new Error('CHANGELOG.md lists no change under Unreleased')
  replaceIn('CHANGELOG.md', UNRELEASED, `${UNRELEASED}\n## [${version}] - ${day}\n`)
}

function freezeMigrations(version: string): void {
  const released = readReleased()
  const frozen = Object.values(released).flatMap((migrations) => Object.keys(migrations))
  const added = Object.entries(readMigrations()).filter(([name]) => !frozen.includes(name))
  const next = { ...released, [version]: Object.fromEntries(added) }
  writeFileSync('drizzle/released.json', `${JSON.stringify(next, null, 2)}\n`)
}

await runCommand({
  usage: USAGE,
  options: {},
  run: async () => {
    const { version } = readVersion()
    if (version in readReleased()) throw new Error(`${version} is released already`)
    nameChanges(version, new Date().toISOString().slice(0, 10))
    freezeMigrations(version)
    replaceIn('Dockerfile', /(?<=^ARG VERSION=)\S+$/gm, version)
    for (const example of ['node', 'react', 'vite']) {
      replaceIn(`docs/examples/${example}/package.json`, /(?<=confidential-payroll-sdk-)[^"]+(?=\.tgz)/, version)
    }
    await makeData(`tests/releases/${version}`)
    print(`CHANGELOG.md, drizzle/released.json, Dockerfile, docs/examples and tests/releases/${version} are written.`)
  },
})
