import { StrKey } from '@stellar/stellar-sdk'
import { eq } from 'drizzle-orm'
import { afterAll, afterEach, beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { refusals } from '#drizzle/schema/audit.ts'
import { chores } from '#drizzle/schema/chores.ts'
import { contractors } from '#drizzle/schema/directory.ts'
import { idempotencyKeys } from '#drizzle/schema/idempotency.ts'
import { relayJobs, relayLines } from '#drizzle/schema/relay.ts'
import { usedChallenges } from '#drizzle/schema/transfers.ts'
import { insertRows, itemRow, jobRow } from '#lib/cli/seed/rows.ts'
import { runChores, SHARED, startMaintenance } from '#lib/server/maintenance.ts'
import { captureLog } from '../support/console.ts'
import { accountOf, keyOf } from '../support/directory.ts'
import { openTestService, type TestService } from '../support/test-service.ts'

let service: TestService<'fake'>
let session: string
let logged: string[]
let employers = 60_000
beforeAll(async () => {
  service = await openTestService({ ledger: 'fake' })
})
afterAll(() => service?.close())
beforeEach(async () => {
  logged = captureLog()
  employers += 1
  session = await service.wallet(accountOf(employers))
  service.ledger.fault = undefined
})
afterEach(() => {
  vi.restoreAllMocks()
})

/** A contractor who registered after the record was created, and an expired used challenge. */
async function leaveChores(): Promise<string> {
  const address = accountOf(employers + 1_000)
  const { body } = await service.ask('POST', '/contractors', { session, body: { name: 'Ann', address } })
  service.ledger.register(address, keyOf(1))
  await service.db.insert(usedChallenges).values({ hash: `${employers}`, expiresAt: new Date(Date.now() - 1000) })
  return String(body.id)
}

const statusOf = async (id: string) =>
  (await service.db.query.contractors.findFirst({ where: eq(contractors.id, id) }))?.status

test('returns the number of records that each chore processed', async () => {
  const id = await leaveChores()
  expect(await runChores(service.running)).toMatchObject({ transfers: 0, contractors: 1, challenges: 1 })
  expect(await statusOf(id)).toBe('ready')
  expect(await runChores(service.running)).toMatchObject({ contractors: 0, challenges: 0 })
})

test('deletes counts of refusals after 30 days', async () => {
  const now = Date.now()
  const ages = [29, 31].map((days) => ({
    account: `refused ${days} days ago`,
    hour: `${days}`,
    reason: 'quota',
    lastHash: 'a hash',
    lastAt: new Date(now - days * 86_400_000),
  }))
  await service.db.insert(refusals).values(ages)
  expect(await runChores(service.running)).toMatchObject({ counts: 1 })
  expect(await service.db.query.refusals.findMany()).toMatchObject([{ account: 'refused 29 days ago' }])
  expect(await runChores(service.running)).toMatchObject({ counts: 0 })
})

/** More than a round deletes of each. */
async function expire(count: number): Promise<void> {
  const expired = new Date(Date.now() - 31 * 86_400_000)
  const names = Array.from({ length: count }, (_, n) => `expired ${n}`)
  await service.db.insert(usedChallenges).values(names.map((hash) => ({ hash, expiresAt: expired })))
  const refused = { hour: 'hour', reason: 'quota', lastHash: 'a hash', lastAt: expired }
  await service.db.insert(refusals).values(names.map((account) => ({ account, ...refused })))
}

test('deletes 1,000 records in a round, and the rest of them where only a scheduler runs the chores', async () => {
  await expire(2_500)
  expect(await runChores(service.running, 0)).toMatchObject({ challenges: 1_000, counts: 1_000 })
  expect(await runChores(service.running)).toMatchObject({ challenges: 1_500, counts: 1_500 })
})

test('deletes Idempotency-Keys after 24 hours', async () => {
  const ages = [23, 25].map((hours) => ({
    kind: 'ledger' as const,
    sub: 'a user',
    key: `${hours}`,
    fingerprint: 'a body',
    outcome: { ids: [] },
    createdAt: new Date(Date.now() - hours * 3_600_000),
  }))
  await service.db.insert(idempotencyKeys).values(ages)
  expect(await runChores(service.running)).toMatchObject({ keys: 1 })
  expect(await service.db.select().from(idempotencyKeys)).toMatchObject([{ key: '23' }])
})

test('logs a failed chore by name and runs the others', async () => {
  await leaveChores()
  service.ledger.fault = 'http-503'
  expect(await runChores(service.running)).toMatchObject({ contractors: null, challenges: 1 })
  expect(logged.map((line) => JSON.parse(line))).toContainEqual(
    expect.objectContaining({ level: 'error', event: 'chore', chore: 'contractors' }),
  )
})

test('runs a shared chore once in an interval, no matter how many processes there are', async () => {
  const id = await leaveChores()
  await service.db.delete(chores)
  service.ledger.requests.length = 0
  const ends = Array.from({ length: 3 }, () => startMaintenance(service.running, 60_000))
  await expect.poll(() => statusOf(id)).toBe('ready')
  await expect.poll(() => service.db.$count(chores)).toBe(SHARED.size)
  await Promise.all(ends.map((end) => end()))
  expect(service.ledger.requests).toHaveLength(1)
})

test('ends the overdue lines of every relay key, also in a process that accepts no jobs', async () => {
  await service.db.delete(chores)
  const jobs = ['one', 'other'].map((relayKey) => jobRow({ relayKey, userSub: relayKey }))
  const queuedAt = new Date(Date.now() - 25 * 3_600_000)
  await insertRows(service.db, { jobs, items: jobs.map(({ id }) => itemRow({ job: id, queuedAt })) })
  const settings = { ...service.running.settings, token: StrKey.encodeContract(new Uint8Array(32)) }
  const end = startMaintenance({ ...service.running, settings, batch: undefined }, 60_000)
  const outcomes = async () => (await service.db.query.relayLines.findMany()).map(({ outcome }) => outcome)
  await expect.poll(outcomes).toEqual(['failed', 'failed'])
  await end()
  expect(await service.db.$count(chores, eq(chores.name, 'lines'))).toBe(1)
  await service.db.delete(relayLines)
  await service.db.delete(relayJobs)
})

test('leaves a shared chore that has failed to the other processes at once', async () => {
  const id = await leaveChores()
  await service.db.delete(chores)
  service.ledger.fault = 'http-503'
  const end = startMaintenance(service.running, 60_000)
  await expect.poll(() => logged.filter((line) => line.includes('"contractors"')).length).toBe(1)
  await end()
  service.ledger.fault = undefined
  const endOther = startMaintenance(service.running, 60_000)
  await expect.poll(() => statusOf(id)).toBe('ready')
  await endOther()
})

test('reaches every waiting contractor through the cron route alone, 1,000 in a round', async () => {
  await service.db.delete(chores)
  for (const first of [80_000, 80_500]) {
    const rows = Array.from({ length: 500 }, (_, n) => ({ name: `n${n}`, address: accountOf(first + n) }))
    expect(await service.ask('POST', '/contractors/bulk', { session, body: { rows } })).toMatchObject({ status: 200 })
  }
  const id = await leaveChores()
  const counts = [await runChores(service.running), await runChores(service.running)]
  expect(counts.map((report) => report.contractors)).toEqual([0, 1])
  expect(await statusOf(id)).toBe('ready')
  await service.db.delete(contractors)
})

test('continues after the last contractor that a sweep looked up', async () => {
  const id = await leaveChores()
  const [row] = await service.db.select().from(contractors).where(eq(contractors.id, id))
  await service.db
    .insert(chores)
    .values({ name: 'contractors', begunAt: new Date(), after: row?.sequence ?? 0 })
    .onConflictDoUpdate({
      target: chores.name,
      set: { after: row?.sequence ?? 0 },
    })
  expect(await runChores(service.running)).toMatchObject({ contractors: 0 })
  expect(await runChores(service.running)).toMatchObject({ contractors: 1 })
})

test('runs the chores again after one has failed', async () => {
  const id = await leaveChores()
  service.ledger.fault = 'http-503'
  const end = startMaintenance(service.running, 5)
  await expect.poll(() => logged.filter((line) => line.includes('"chore"')).length).toBeGreaterThan(1)
  service.ledger.fault = undefined
  await expect.poll(() => statusOf(id)).toBe('ready')
  await end()
})

test('runs one chore at a time, and stops after the current one', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
  const { running } = service
  const gate = Promise.withResolvers<void>()
  const done: string[] = []
  // Every chore opens the database first.
  const database = vi.fn(async () => {
    await gate.promise
    done.push('chore')
    return await running.database()
  })
  const end = startMaintenance({ ...running, database }, 1000)
  vi.advanceTimersByTime(10_000)
  const ended = end().then(() => done.push('maintenance'))
  vi.advanceTimersByTime(10_000)
  gate.resolve()
  await ended
  expect(vi.getTimerCount()).toBe(0)
  vi.advanceTimersByTime(10_000)
  expect(done).toEqual(['chore', 'maintenance'])
  expect(database).toHaveBeenCalledTimes(1)
})
