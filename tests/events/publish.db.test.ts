import { randomUUID } from 'node:crypto'
import { asc, eq } from 'drizzle-orm'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { auditLog } from '#drizzle/schema/audit.ts'
import type { AuditAction } from '#drizzle/schema/audit-actions.ts'
import { batches, contractors, payouts } from '#drizzle/schema/directory.ts'
import { events } from '#drizzle/schema/events.ts'
import { envelopeRow, insertRows, transferRow } from '#lib/cli/seed/rows.ts'
import { dropAudit } from '#lib/db/audit-export.ts'
import { type AuditEntry, recordAudit } from '#lib/db/audit-log.ts'
import { EVENT_TYPES, eventShape, presentEvent, TYPE_OF_ACTION } from '#lib/events/event.ts'
import { publishEvents } from '#lib/events/publish.ts'
import { type Employer, employerNamed } from '../support/fixtures.ts'
import { openTestService, type TestService } from '../support/test-service.ts'

let service: TestService
let ada: Employer
beforeAll(async () => {
  service = await openTestService()
  ada = await employerNamed(service, 'ada')
})
afterAll(() => service.close())

const entry = (action: AuditAction, subject: string, detail: AuditEntry['detail'] = {}): AuditEntry => ({
  organisation: ada.organisation,
  actor: { kind: 'idp', sub: 'SECRET-ACTOR@example.com' },
  action,
  subject,
  detail,
})

async function publishAll(): Promise<void> {
  while ((await publishEvents(service.db)) > 0);
}

async function eventsOf(records: readonly string[]) {
  const rows = await service.db.select().from(events).orderBy(asc(events.number))
  return rows.map(presentEvent).filter(({ data }) => Object.values(data).some((value) => records.includes(value)))
}

/** Texts that must never leave the database in an event. */
const SECRETS = {
  name: 'SECRET NAME',
  email: 'secret@mail.example',
  rateAmount: '4250.5',
  address: 'GDSECRETADDRESS',
  encryptedAmount: 'SECRET CIPHERTEXT',
}

test('tells of every type ids, statuses and hashes only', async () => {
  const { name, email, rateAmount } = SECRETS
  const payee = await ada.engage(name)
  await service.db
    .update(contractors)
    .set({ email, emailFolded: email, rateAmount, rateCurrency: 'USDC' })
    .where(eq(contractors.id, payee.id))
  const { id: batch, payouts: made } = await ada.prepare([payee])
  const payout = made[0]?.id ?? ''
  const own = { contractor: 'hr/17', batch: 'payroll/3', payout: '3/17' }
  await service.db.update(contractors).set({ externalId: own.contractor }).where(eq(contractors.id, payee.id))
  await service.db.update(batches).set({ externalId: own.batch }).where(eq(batches.id, batch))
  await service.db.update(payouts).set({ externalId: own.payout }).where(eq(payouts.id, payout))
  const txHash = 'ab'.repeat(32)
  await service.db
    .update(payouts)
    .set({ encryptedAmount: SECRETS.encryptedAmount, status: 'paid', txHash, paidAt: new Date() })
    .where(eq(payouts.id, payout))
  await publishAll()
  const before = (await eventsOf([payee.id, batch, payout])).length
  const detail = { reason: 'SECRET REASON', note: 'SECRET NOTE', fields: ['SECRET FIELD'], payout }
  const subjectOf = (type: string) =>
    type.startsWith('payout') ? payout : /^(contractor|invite)/.test(type) ? payee.id : batch
  const written = Object.entries(TYPE_OF_ACTION).map(([action, type]) => {
    return entry(action as AuditAction, action === 'transfer.sponsored' ? 'ef'.repeat(32) : subjectOf(type), detail)
  })
  await recordAudit(service.db, new Date(), ...written)
  await publishAll()
  const told = (await eventsOf([payee.id, batch, payout])).slice(before)
  expect(told.map(({ type }) => type)).toEqual(Object.values(TYPE_OF_ACTION))
  expect(new Set(told.map(({ type }) => type))).toEqual(new Set(EVENT_TYPES))
  for (const event of told) {
    expect(eventShape.strict().parse(event)).toEqual(event)
    const values = Object.values(event.data)
    const isAllowed = (value: string) =>
      [payee.id, batch, payout, txHash, ...Object.values(own)].includes(value) ||
      /^(draft|ready|started|completed|failed|running|pending|paid|canceled)$/.test(value)
    expect(values.filter((value) => !isAllowed(value))).toEqual([])
    const text = JSON.stringify(event)
    for (const secret of ['SECRET', ...Object.values(SECRETS), payee.address]) expect(text).not.toContain(secret)
  }
  expect(told.find(({ type }) => type === 'payout.paid')?.data).toEqual({
    ...{ payoutId: payout, batchId: batch, contractorId: payee.id },
    ...{ status: 'paid', txHash, externalId: own.payout },
  })
  expect(told.find(({ type }) => type === 'run.started')?.data.externalId).toBe(own.batch)
  expect(told.find(({ type }) => type === 'invite.sent')?.data.externalId).toBe(own.contractor)
})

test('publishes nothing of an entry without an organisation, and of an action that is no event', async () => {
  const subject = randomUUID()
  await recordAudit(
    service.db,
    new Date(),
    { ...entry('batch.created', subject), organisation: undefined },
    entry('batch.sealed', subject),
    entry('transfer.sponsored', subject),
  )
  await publishAll()
  expect(await eventsOf([subject])).toEqual([])
})

test('tells once that a payout is pending, also if only a later envelope of the transfer names it', async () => {
  const { payouts: made } = await ada.prepare([await ada.engage('One'), await ada.engage('Two')])
  const [named, late] = made.map(({ id }) => id)
  const transfers = [transferRow(), transferRow({ account: 'GOTHER' })]
  const hashes = transfers.flatMap(({ id }) => [0, 1, 2].map((n) => ({ transfer: id, innerHash: randomUUID(), n })))
  const envelopes = hashes.map(({ n, ...one }) => envelopeRow({ ...one, recordedAt: new Date(Date.now() + n) }))
  await insertRows(service.db, { transfers, envelopes })
  // The first transfer's envelopes all name the payout, the second one's only from the second on.
  const payoutOf = (index: number) => (index < 3 ? named : index === 3 ? undefined : late)
  const written = envelopes.map(({ innerHash }, index) => {
    const payout = payoutOf(index)
    return entry('transfer.sponsored', innerHash, payout === undefined ? {} : { payout })
  })
  await recordAudit(service.db, new Date(), ...written)
  await publishAll()
  const pending = (await eventsOf([String(named), String(late)])).filter(({ type }) => type === 'payout.pending')
  expect(pending.map(({ data }) => data.payoutId)).toEqual([named, late])
})

test('passes any number of entries that are no events', async () => {
  const subject = randomUUID()
  const others = Array.from({ length: 1_200 }, () => entry('transfer.sponsored', 'ab'.repeat(32)))
  await recordAudit(service.db, new Date(), ...others, entry('batch.created', subject))
  await publishAll()
  expect(await eventsOf([subject])).toHaveLength(1)
})

test('publishes each entry once, with consecutive numbers, however many publishers there are', async () => {
  const subjects = Array.from({ length: 2_500 }, () => randomUUID())
  await recordAudit(service.db, new Date(), ...subjects.map((subject) => entry('batch.created', subject)))
  await Promise.all(Array.from({ length: 8 }, () => publishAll()))
  await publishAll()
  const rows = await service.db.select().from(events).orderBy(asc(events.number))
  expect(rows.map(({ number }) => number)).toEqual(rows.map((_, index) => index + 1))
  expect((await eventsOf(subjects)).map(({ data }) => data.batchId)).toEqual(subjects)
})

test('forgets the events of a month that is deleted from the log', async () => {
  const subject = randomUUID()
  await recordAudit(service.db, new Date('2020-01-05'), entry('batch.created', subject))
  await publishAll()
  expect(await eventsOf([subject])).toHaveLength(1)
  const isIt = eq(auditLog.subjectId, subject)
  const [last] = await service.db.select({ sequence: auditLog.sequence }).from(auditLog).where(isIt)
  const before = new Date('2020-02-01')
  await dropAudit(service.db, { before, last: last?.sequence ?? 0, actor: 'command line', now: new Date() })
  expect(await eventsOf([subject])).toEqual([])
  await publishAll()
  expect(await eventsOf([subject])).toEqual([])
})
