import { globSync, readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { type DrizzleSnapshotJSON, generateDrizzleJson, generateMigration } from 'drizzle-kit/api'
import { expect, test } from 'vitest'
import config from '#drizzle/drizzle.config.ts'

const snapshots = globSync('drizzle/migrations/meta/*_snapshot.json').sort()

/** Everything that the files of the configuration export. */
async function loadSchema(): Promise<Record<string, unknown>> {
  const files = globSync([config.schema ?? []].flat()).map((file) => pathToFileURL(file).href)
  expect(files.length).toBeGreaterThan(0)
  const modules: Record<string, unknown>[] = await Promise.all(files.map((file) => import(file)))
  return Object.assign({}, ...modules)
}

test('the migration says all that the schema says', async () => {
  const latest = JSON.parse(readFileSync(snapshots.at(-1) ?? '', 'utf8')) as DrizzleSnapshotJSON
  const current = generateDrizzleJson(await loadSchema(), latest.id)
  expect(await generateMigration(latest, current)).toEqual([])
})

test('the one migration ends with what drizzle-kit cannot describe', () => {
  expect(globSync('drizzle/migrations/*.sql')).toEqual(['drizzle/migrations/0000_initial.sql'])
  const migration = readFileSync('drizzle/migrations/0000_initial.sql', 'utf8')
  expect(migration.endsWith(readFileSync('drizzle/append-only.sql', 'utf8'))).toBe(true)
})
