import { asc, eq } from 'drizzle-orm'
import { expect, test } from 'vitest'
import { contractors } from '#drizzle/schema/directory.ts'
import { contractorRow, insertRows, organisationRow } from '#lib/cli/seed/rows.ts'
import { rowsOf } from '#lib/db/rows.ts'
import { cloneDatabase } from '../support/database.ts'

test('maps nulls, times and numbers like drizzle', async () => {
  const { store, drop } = await cloneDatabase()
  const db = await store.database()
  const organisation = organisationRow()
  const { id } = organisation
  const moment = new Date('2026-03-01T12:00:00.123Z')
  const ada = contractorRow({ organisation: id, email: 'ada@x.example', lastPaidAt: moment })
  const grace = contractorRow({ organisation: id, name: 'Grace' })
  await insertRows(db, { organisations: [organisation], contractors: [ada, grace] })
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
