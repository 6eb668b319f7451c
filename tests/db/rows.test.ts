import { setImmediate } from 'node:timers/promises'
import { asc, eq } from 'drizzle-orm'
import { expect, test } from 'vitest'
import { contractors, organisations } from '#drizzle/schema/directory.ts'
import { inLine, rowsOf } from '#lib/db/rows.ts'
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
  expect(await rowsOf(db, columns, query).execute()).toEqual(expected)
  await drop()
})

test('of many queries three run at once, and each runs, in their order, whatever becomes of the others', async () => {
  const begun: number[] = []
  let running = 0
  let most = 0
  const queries = Array.from({ length: 40 }, (_, index) =>
    inLine(async () => {
      begun.push(index)
      running += 1
      most = Math.max(most, running)
      await setImmediate()
      running -= 1
      if (index % 4 === 0) throw new Error('not this one')
    }),
  )
  const settled = await Promise.allSettled(queries)
  expect(settled.filter(({ status }) => status === 'rejected')).toHaveLength(10)
  expect([most, running]).toEqual([3, 0])
  expect(begun).toEqual([...begun.keys()])
  // Every place is free again.
  await Promise.all([inLine(setImmediate), inLine(setImmediate), inLine(setImmediate)])
})
