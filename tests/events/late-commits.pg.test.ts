import { randomUUID } from 'node:crypto'
import { eq } from 'drizzle-orm'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { auditLog } from '#drizzle/schema/audit.ts'
import { chores } from '#drizzle/schema/chores.ts'
import { events } from '#drizzle/schema/events.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import type { Database } from '#lib/db/connection.ts'
import { publishEvents } from '#lib/events/publish.ts'
import { cloneDatabase, type TestDatabase } from '../support/database.ts'

let database: TestDatabase
let db: Database
beforeAll(async () => {
  database = await cloneDatabase()
  db = await database.store.database()
})
afterAll(() => database.drop())

const organisation = randomUUID()
const write = (tx: Database, subject: string) =>
  recordAudit(tx, new Date(), {
    organisation,
    actor: { kind: 'service', sub: 'test' },
    action: 'batch.created',
    subject,
  })

async function published(): Promise<(string | undefined)[]> {
  const rows = await db.select({ data: events.data }).from(events).orderBy(events.number)
  return rows.map(({ data }) => data.batchId)
}

async function readThrough(): Promise<number> {
  const [state] = await db.select({ after: chores.after }).from(chores).where(eq(chores.name, 'events'))
  return state?.after ?? -1
}

test('publishes an entry that commits after entries with later numbers', async () => {
  const [early, late] = [randomUUID(), randomUUID()]
  const written = Promise.withResolvers<void>()
  const commit = Promise.withResolvers<void>()
  const slow = db.transaction(async (tx) => {
    await write(tx, early)
    written.resolve()
    await commit.promise
  })
  await written.promise
  await write(db, late)
  const [last] = await db.select({ sequence: auditLog.sequence }).from(auditLog).where(eq(auditLog.subjectId, late))
  let now = Date.now()
  const later = () => {
    now += 60_000
    return now
  }
  // However long the transaction takes: the publisher does not pass it.
  for (let round = 0; round < 5; round += 1) await publishEvents(db, later())
  expect(await published()).toEqual([late])
  expect(await readThrough()).toBeLessThan((last?.sequence ?? 0) - 1)
  commit.resolve()
  await slow
  expect(await publishEvents(db, later())).toBe(1)
  expect(await published()).toEqual([late, early])
  // Now nothing before the last entry can appear any more, and it is not read again. Other tests' transactions count, too.
  await expect.poll(async () => (await publishEvents(db, later())) + (await readThrough())).toBe(last?.sequence)
  expect(await publishEvents(db, later())).toBe(0)
})

test('leaves the numbering to a publisher that is at it', async () => {
  const subject = randomUUID()
  await write(db, subject)
  const locked = Promise.withResolvers<void>()
  const finish = Promise.withResolvers<void>()
  const other = db.transaction(async (tx) => {
    await tx.execute('SELECT pg_advisory_xact_lock(7220130419663202)')
    locked.resolve()
    await finish.promise
  })
  await locked.promise
  expect(await publishEvents(db)).toBe(0)
  finish.resolve()
  await other
  expect(await publishEvents(db)).toBe(1)
})
