import { asc, eq } from 'drizzle-orm'
import { expect, test } from 'vitest'
import { contractors, organisations } from '#drizzle/schema/directory.ts'
import { rowsOf } from '#lib/db/rows.ts'
import { cloneDatabase } from '../support/database.ts'

test('rows are what drizzle makes of them, nulls, moments and numbers', async () => {
  const { store, drop } = await cloneDatabase()
  const db = await store.database()
  const [{ id } = { id: '' }] = await db.insert(organisations).values({ name: 'one' }).returning()
  const moment = new Date('2026-03-01T12:00:00.123Z')
  const given = { organisation: id, status: 'invited', inviteExpiresAt: moment } as const
  await db.insert(contractors).values([
    { ...given, name: 'Ada', email: 'ada@x.example', emailFolded: 'ada@x.example', lastPaidAt: moment },
    { ...given, name: 'Grace' },
  ])
  const { id: own, name, email, lastPaidAt, sequence, inviteVersion } = contractors
  const columns = { own, name, email, lastPaidAt, sequence, inviteVersion }
  const query = db.select(columns).from(contractors).where(eq(contractors.organisation, id)).orderBy(asc(sequence))
  const expected = await query
  expect(expected.map((row) => [row.name, row.email, row.lastPaidAt])).toEqual([
    ['Ada', 'ada@x.example', moment],
    ['Grace', null, null],
  ])
  expect(await rowsOf(db, columns, query).execute(id)).toEqual(expected)
  await drop()
})
