import { readFileSync, writeFileSync } from 'node:fs'
import { digestMigrations, readReleased } from '#drizzle/released.ts'
import { runCommand } from '#lib/cli/process/command.ts'
import { print } from '#lib/cli/process/output.ts'
import { readVersion } from '#lib/config/version.ts'
import { makeData } from './make-data.ts'

const USAGE = `npm version major | minor | patch

npm sets the version in package.json, and this program does the rest of a release before npm commits and tags it: it
gives the changelog's unreleased part its heading, freezes new migrations in drizzle/released.json, names the version in
the Dockerfile, the guide and the examples, and writes the data of the version into tests/releases. If it fails, nothing is
committed: undo what it has written with git, and run it again. See CONTRIBUTING.md.`

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

function addedMigrations(): [string, object][] {
  const frozen = Object.values(readReleased()).flatMap((migrations) => Object.keys(migrations))
  return Object.entries(digestMigrations()).filter(([name]) => !frozen.includes(name))
}

function freezeMigrations(version: string): void {
  const next = { ...readReleased(), [version]: Object.fromEntries(addedMigrations()) }
  writeFileSync('drizzle/released.json', `${JSON.stringify(next, null, 2)}\n`)
}

const EXAMPLES = ['node', 'react', 'vite']

/** A patch changes no table: an older patch must run on its database. @throws if it has a new migration */
function requireMinor(version: string): void {
  if (!version.endsWith('.0') && addedMigrations().length > 0) throw new Error('a new migration needs a minor version')
}

await runCommand({
  usage: USAGE,
  options: {},
  run: async () => {
    const { version } = readVersion()
    if (version in readReleased()) throw new Error(`${version} is released already`)
    requireMinor(version)
    // First what takes minutes and may fail.
    await makeData(`tests/releases/${version}`)
    nameChanges(version, new Date().toISOString().slice(0, 10))
    freezeMigrations(version)
    replaceIn('Dockerfile', /(?<=^ARG VERSION=)\S+$/gm, version)
    for (const file of ['docs/api.md', ...EXAMPLES.map((name) => `docs/examples/${name}/package.json`)]) {
      replaceIn(file, /(?<=confidential-payroll-sdk-)\d+\.\d+\.\d+(?=\.tgz)/g, version)
    }
    print(`CHANGELOG.md, drizzle/released.json, Dockerfile, docs/examples and tests/releases/${version} are written.`)
  },
})
