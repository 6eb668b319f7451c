import { globSync, readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import { type DrizzleSnapshotJSON, generateDrizzleJson, generateMigration } from 'drizzle-kit/api'
import { missingStatements, undeclaredContractions } from '#drizzle/declared-objects.ts'
import config from '#drizzle/drizzle.config.ts'
import { readMigrations, readReleased } from '#drizzle/released.ts'
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
      const existing = readMigrations()
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
      return later.flatMap((file) => undeclaredContractions(read(file)).map((statement) => `${file}: ${statement}`))
    },
  },
]
