import { globSync, readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { type DrizzleSnapshotJSON, generateDrizzleJson, generateMigration } from 'drizzle-kit/api'
import config from '#drizzle/drizzle.config.ts'
import type { Rule } from './sources.ts'

const SNAPSHOT = 'drizzle/migrations/meta/0000_snapshot.json'
const MIGRATION = 'drizzle/migrations/0000_initial.sql'

/** All exports of the schema files. */
async function loadSchema(): Promise<Record<string, unknown>> {
  const files = globSync([config.schema ?? []].flat()).map((file) => pathToFileURL(file).href)
  const modules: Record<string, unknown>[] = await Promise.all(files.map((file) => import(file)))
  return Object.assign({}, ...modules)
}

export const MIGRATION_RULES: Rule[] = [
  {
    name: 'the migration matches the schema (npm run db:generate regenerates it)',
    violations: async () => {
      const latest = JSON.parse(readFileSync(SNAPSHOT, 'utf8')) as DrizzleSnapshotJSON
      return await generateMigration(latest, generateDrizzleJson(await loadSchema(), latest.id))
    },
  },
  {
    name: 'there is one migration, between the statements that drizzle-kit cannot describe',
    violations: () => {
      const others = globSync('drizzle/migrations/*.sql').filter((file) => file !== MIGRATION)
      const migration = readFileSync(MIGRATION, 'utf8')
      const [first, last] = ['drizzle/extensions.sql', 'drizzle/functions.sql'] as const
      return [
        ...others,
        ...(migration.startsWith(readFileSync(first, 'utf8')) ? [] : [`${MIGRATION} does not begin with ${first}`]),
        ...(migration.endsWith(readFileSync(last, 'utf8')) ? [] : [`${MIGRATION} does not end with ${last}`]),
      ]
    },
  },
]
