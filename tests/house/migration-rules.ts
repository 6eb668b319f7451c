import { existsSync, globSync, readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import { type DrizzleSnapshotJSON, generateDrizzleJson, generateMigration } from 'drizzle-kit/api'
import { missingStatements, undeclaredContractions } from '#drizzle/declared-objects.ts'
import config from '#drizzle/drizzle.config.ts'
import { digestMigrations, readReleased } from '#drizzle/released.ts'
import type { Rule } from './sources.ts'

const read = (file: string) => readFileSync(file, 'utf8')
const matching = (pattern: string) => globSync(`drizzle/migrations/${pattern}`).toSorted()

/** All exports of the schema files. */
async function loadSchema(): Promise<Record<string, unknown>> {
  const files = globSync([config.schema ?? []].flat()).map((file) => pathToFileURL(file).href)
  const modules: Record<string, unknown>[] = await Promise.all(files.map((file) => import(file)))
  return Object.assign({}, ...modules)
}

export const MIGRATION_RULES: Rule[] = [
  {
    name: 'a released migration never changes: add another one (npm run db:generate -- --name WHAT)',
    violations: () => {
      const existing = digestMigrations()
      return Object.entries(readReleased()).flatMap(([version, migrations]) =>
        Object.entries(migrations)
          .filter(([name, released]) => !isDeepStrictEqual(existing[name], released))
          .map(([name]) => `${name} differs from release ${version}`),
      )
    },
  },
  {
    name: 'the migrations match the schema (npm run db:generate -- --name WHAT adds what is missing)',
    violations: async () => {
      const latest = JSON.parse(read(matching('meta/*_snapshot.json').at(-1) ?? '')) as DrizzleSnapshotJSON
      return [
        ...(await generateMigration(latest, generateDrizzleJson(await loadSchema(), latest.id))),
        ...missingStatements(read('drizzle/functions.sql'), matching('*.sql').map(read)),
      ]
    },
  },
  {
    name: 'a migration that removes what older versions use inserts into "contractions" (drizzle/README.md)',
    violations: () => {
      const [, ...later] = matching('*.sql')
      return later.flatMap((file, index) =>
        undeclaredContractions(read(file), index + 2).map((statement) => `${file}: ${statement}`),
      )
    },
  },
  {
    name: 'migrations are in the order of their times: the service passes over one that is older than the last',
    violations: () => {
      const times = Object.entries(digestMigrations()).map(([name, { when }]) => ({ name, when }))
      return times
        .filter(({ when }, index) => index > 0 && when <= (times[index - 1]?.when ?? 0))
        .map(({ name }) => name)
    },
  },
  {
    name: 'the version of package.json is released: changelog, images, examples and data have it',
    violations: () => {
      const { version } = JSON.parse(read('package.json')) as { version: string }
      const named: [file: string, text: string][] = [
        ['CHANGELOG.md', `## [${version}] - `],
        ['Dockerfile', `ARG VERSION=${version}\n`],
        ['docs/api.md', `confidential-payroll-sdk-${version}.tgz`],
        ...['node', 'react', 'vite'].map((name): [string, string] => [
          `docs/examples/${name}/package.json`,
          `confidential-payroll-sdk-${version}.tgz`,
        ]),
        ['drizzle/released.json', `"${version}"`],
      ]
      const missing = named.filter(([file, text]) => !read(file).includes(text)).map(([file]) => `${file}: ${version}`)
      const hasData = existsSync(`tests/releases/${version}/unfinished.json`)
      return [...missing, ...(hasData ? [] : [`tests/releases has no data of ${version}`])]
    },
  },
]
