import { globSync, readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { type DrizzleSnapshotJSON, generateDrizzleJson, generateMigration } from 'drizzle-kit/api'
import { expect, test } from 'vitest'
import config from '#drizzle/drizzle.config.ts'

const snapshots = globSync('drizzle/migrations/meta/*_snapshot.json').sort()
const journal = JSON.parse(readFileSync('drizzle/migrations/meta/_journal.json', 'utf8')) as {
  entries: { idx: number; tag: string; when: number }[]
}

/** Everything that the files of the configuration export. */
async function loadSchema(): Promise<Record<string, unknown>> {
  const files = globSync([config.schema ?? []].flat()).map((file) => pathToFileURL(file).href)
  expect(files.length).toBeGreaterThan(0)
  const modules: Record<string, unknown>[] = await Promise.all(files.map((file) => import(file)))
  return Object.assign({}, ...modules)
}

test('the migrations say all that the schema says', async () => {
  const latest = JSON.parse(readFileSync(snapshots.at(-1) ?? '', 'utf8')) as DrizzleSnapshotJSON
  const current = generateDrizzleJson(await loadSchema(), latest.id)
  expect(await generateMigration(latest, current)).toEqual([])
})

test('the migrations are a chain, a file and a snapshot each', () => {
  const files = globSync('drizzle/migrations/*.sql').sort()
  expect(files).toEqual(journal.entries.map(({ tag }) => `drizzle/migrations/${tag}.sql`))
  expect(snapshots).toHaveLength(files.length)
  expect(journal.entries.map(({ idx }) => idx)).toEqual(files.map((_, position) => position))
  const links = snapshots.map((file) => JSON.parse(readFileSync(file, 'utf8')) as { id: string; prevId: string })
  expect(links.slice(1).map(({ prevId }) => prevId)).toEqual(links.slice(0, -1).map(({ id }) => id))
})

test('a later migration has the later date, or it would never be applied', () => {
  const dates = journal.entries.map(({ when }) => when)
  expect(dates).toEqual([...dates].sort((one, other) => one - other))
})
