import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Database, openStore, type Store } from '#lib/db/connection.ts'
import { analyzeGrownTables } from '#lib/db/statistics.ts'

let store: Store
let db: Database
beforeAll(async () => {
  store = openStore({ directory: null })
  db = await store.database()
})
afterAll(() => store.close())

async function insertContractors(contractors: number): Promise<void> {
  await db.execute(sql`WITH organisation AS (INSERT INTO organisations (name) VALUES ('Acme') RETURNING id)
    INSERT INTO contractors (organisation, name, status, email, email_folded, invite_expires_at)
    SELECT id, 'n' || n, 'invited', n || '@b.example', n || '@b.example', now()
    FROM organisation, generate_series(1, ${contractors}) n`)
}

/** The plan of the query for the invites of an email. */
async function planOf(email: string): Promise<string> {
  const plan = await db.execute(sql`EXPLAIN SELECT id FROM contractors WHERE email_folded = ${email}
    AND deleted_at IS NULL AND linked_kind IS NULL AND status <> 'inactive'`)
  return JSON.stringify(plan)
}

test('analyzes a table on PGlite each time it has doubled', async () => {
  expect(await analyzeGrownTables(db)).toEqual([])
  await insertContractors(5_000)
  expect(await analyzeGrownTables(db)).toEqual(['contractors'])
  expect(await analyzeGrownTables(db)).toEqual([])
  expect(await planOf('7@b.example')).toContain('contractors_email')
  await insertContractors(1_000)
  expect(await analyzeGrownTables(db)).toEqual([])
  await insertContractors(5_000)
  expect(await analyzeGrownTables(db)).toEqual(['contractors'])
})
