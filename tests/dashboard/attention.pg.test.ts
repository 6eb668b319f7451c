import { and, eq } from 'drizzle-orm'
import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { AttentionList } from '#app/(operator)/overview/attention-list.tsx'
import { PAYOUT_LIST } from '#app/(operator)/payouts/payout-list.tsx'
import { type BatchStatus, type PayoutStatus, payouts } from '#drizzle/schema/directory.ts'
import { paymentStops, relayChannels } from '#drizzle/schema/relay.ts'
import type { TransferStatus } from '#drizzle/schema/transfers.ts'
import {
  batchRow,
  contractorRow,
  envelopeRow,
  identityRow,
  insertRows,
  itemRow,
  jobRow,
  organisationRow,
  payoutRow,
  transferRow,
} from '#lib/cli/seed/rows.ts'
import { type AcknowledgeableCondition, acknowledge } from '#lib/dashboard/acknowledgements.ts'
import type { Attention } from '#lib/dashboard/attention.ts'
import { listMovingBatches } from '#lib/dashboard/batches.ts'
import { readFilters } from '#lib/dashboard/filters.ts'
import { batchState, jobState, payoutState, transferState } from '#lib/dashboard/lateness.ts'
import { readList } from '#lib/dashboard/list.ts'
import { ORGANISATIONS } from '#lib/dashboard/organisations.ts'
import { readAttention, readAttentionOf } from '#lib/dashboard/overview.ts'
import { PAYOUTS } from '#lib/dashboard/payouts.ts'
import { readPulse } from '#lib/dashboard/pulse.ts'
import { readTraffic } from '#lib/dashboard/traffic.ts'
import { TRANSFERS } from '#lib/dashboard/transfers.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import type { Database } from '#lib/db/connection.ts'
import { type CapturedDatabase, openCaptured } from '../support/captured.ts'
import { startDatabase } from '../support/database.ts'

const NOW = new Date('2026-11-20T12:30:00Z')
const before = (minutes: number) => new Date(NOW.getTime() - minutes * 60_000)

const { filters: ALL_ORGANISATIONS } = readFilters(ORGANISATIONS.filters, {})

let database: CapturedDatabase
let db: Database
let organisation: string

async function batch(
  name: string,
  status: BatchStatus,
  started: number,
  counts: [payouts: number, settled: number, failed: number],
) {
  const [payoutCount, settledCount, failedCount] = counts
  const times = { createdAt: before(started), startedAt: before(started) }
  const row = batchRow({ organisation, name, status, ...times, payoutCount, settledCount, failedCount })
  await insertRows(db, { batches: [row] })
  return row.id
}

/** Creates a payout with its transfer, accepted and perhaps settled that many minutes ago. */
async function payout(
  of: string,
  name: string,
  fields: { status: PayoutStatus; transfer: TransferStatus; at: number; settled?: number; error?: string },
) {
  const { status, transfer, at, settled, error } = fields
  const hash = `${name} ${of}`
  const contractor = contractorRow({ organisation, name })
  const paid = transferRow({
    account: hash,
    sponsor: 'S',
    status: transfer,
    organisation,
    createdAt: before(at),
    ...(settled !== undefined && { settledAt: before(settled) }),
  })
  const row = payoutRow({
    organisation,
    batch: of,
    contractor: contractor.id,
    status,
    transfer: paid.id,
    txHash: hash,
    error,
  })
  await insertRows(db, {
    contractors: [contractor],
    payouts: [row],
    transfers: [{ ...paid, payout: row.id, hash: paid.hash && hash }],
    envelopes: [envelopeRow({ innerHash: hash, outerHash: `outer ${hash}`, transfer: paid.id, maxTime: 1 })],
  })
  await move(of, before(settled ?? at), status === 'failed')
}

/** Records in a batch that one of its payouts was sent, paid or failed. */
async function move(of: string, at: Date, hasFailed: boolean) {
  await database.pool.query(
    `UPDATE batches SET progressed_at = greatest(progressed_at, $2),
      failed_at = CASE WHEN $3 THEN greatest(nullif(failed_at, started_at), $2) ELSE failed_at END WHERE id = $1`,
    [of, at, hasFailed],
  )
}

/** Creates a payout that was not sent. */
async function waiting(of: string, name: string) {
  const contractor = contractorRow({ organisation, name })
  const row = payoutRow({ organisation, batch: of, contractor: contractor.id, status: 'ready' })
  await insertRows(db, { contractors: [contractor], payouts: [row] })
}

beforeAll(async () => {
  database = await openCaptured(await startDatabase())
  db = database.db
  const northwind = organisationRow({ name: 'Northwind' })
  organisation = northwind.id
  await insertRows(db, { organisations: [northwind] })
  const moving = await batch('Moving', 'started', 600, [3, 1, 0])
  await payout(moving, 'Ada', { status: 'paid', transfer: 'succeeded', at: 2, settled: 1 })
  const still = await batch('Still', 'started', 500, [9, 4, 0])
  await payout(still, 'Grace', { status: 'paid', transfer: 'succeeded', at: 181, settled: 180 })
  for (const name of ['Barbara', 'Radia', 'Donald', 'Tony', 'Leslie']) await waiting(still, name)
  const failed = await batch('Failed', 'failed', 400, [2, 0, 2])
  await payout(failed, 'Alan', { status: 'failed', transfer: 'expired', at: 60, settled: 50, error: 'expired' })
  await payout(failed, 'Edsger', { status: 'failed', transfer: 'failed', at: 60, settled: 55, error: 'failed' })
  const open = await batch('Open', 'started', 300, [1, 0, 0])
  await payout(open, 'Katherine', { status: 'pending', transfer: 'open', at: 7 })
  const old = await batch('Old', 'failed', 20_000, [1, 0, 1])
  await payout(old, 'Joan', { status: 'failed', transfer: 'failed', at: 15_000, settled: 15_000, error: 'failed' })
  for (let n = 0; n < 30; n += 1) await batch(`Newer ${n}`, 'started', 5 - n / 10, [1, 0, 0])
})
afterAll(() => database.close())

/** The overview's items with a condition. */
const listWith = async (condition: AcknowledgeableCondition, now = NOW) =>
  (await readAttention(db, now)).items.filter(({ acknowledgeable }) => acknowledgeable?.condition === condition)

test('lists batches in progress by their last progress, without hiding any behind newer ones', async () => {
  const { batches, total } = await listMovingBatches(db, 5)
  expect(total).toBe(33)
  expect(batches.map(({ name }) => name)).toEqual(['Still', 'Open', 'Newer 0', 'Newer 1', 'Newer 2'])
  expect(batches[0]?.progressedAt).toEqual(before(180))
})

test('lists every failed, stalled or overdue record once, by name, with the operator’s items first', async () => {
  const { items, otherFailedBatches } = await readAttention(db, NOW)
  const lines = items.map(({ what, batch, organisation: of, contractors, since }) => [
    what,
    batch?.name,
    of?.name,
    contractors?.map(({ name }) => name).join(', '),
    since && (NOW.getTime() - since.getTime()) / 60_000,
  ])
  expect(lines).toEqual([
    ['transfer to Katherine open', 'Open', 'Northwind', 'Katherine', 7],
    ['1 of 1 payout failed', 'Old', 'Northwind', 'Joan', 15_000],
    ['5 of 9 unpaid', 'Still', 'Northwind', 'Barbara, Radia, Donald, Tony', 180],
    ['2 of 2 payouts failed', 'Failed', 'Northwind', 'Alan, Edsger', 55],
  ])
  expect(items[2]).toMatchObject({ moreContractors: 1, why: expect.stringContaining('4 paid, 0 failed, 5 waiting') })
  expect(items[2]?.remedy).toBe('Ask the employer to send the remaining 5 payouts.')
  expect(items[2]?.request).toMatch(/send the remaining 5 payouts, or cancel them\.$/)
  expect(items[3]?.remedy).toBe('Ask the employer to send the 2 failed payouts again.')
  expect(items[3]?.why).toMatch(/^1: it expired .* nothing was paid; 1: failed$/)
  expect(items.every(({ remedy, page }) => remedy.endsWith('.') && page.startsWith('/'))).toBe(true)
  expect(otherFailedBatches).toBe(0)
})

test('marks a late batch or transfer the same in every list', async () => {
  const { batches } = await listMovingBatches(db, 100)
  const marked = batches.filter((batch) => batchState(batch, NOW) === 'stalled').map(({ name }) => name)
  expect(marked).toEqual(['Still'])
  const { rows } = await readList(TRANSFERS, { db, now: NOW }, readFilters(TRANSFERS.filters, {}).filters, {})
  const overdue = rows.filter((transfer) => transferState(transfer, NOW) === 'overdue')
  expect(overdue.map(({ contractorName }) => contractorName)).toEqual(['Katherine'])
  const open = batches.find(({ name }) => name === 'Open')?.id ?? ''
  const payouts = await readList(PAYOUTS, { db, now: NOW }, readFilters(PAYOUTS.filters, { batch: open }).filters, {})
  expect(payouts.rows.map((payout) => payoutState(payout, NOW))).toEqual(['overdue'])
  expect((await readList(ORGANISATIONS, { db: db, now: NOW }, ALL_ORGANISATIONS, {})).rows).toMatchObject([
    { started: 33, stalled: 1 },
  ])
})

test('marks a batch, job or transfer as late one millisecond after its limit, in every list', async () => {
  const lists = async (now: Date) => {
    const [line] = (await readList(ORGANISATIONS, { db: db, now: now }, ALL_ORGANISATIONS, {})).rows
    return { stalled: line?.stalled, open: (await listWith('transferOverdue', now)).length }
  }
  const stateOf = (status: 'started' | 'running' | 'open', at: Date, now: Date) => {
    if (status === 'started') return batchState({ status, progressedAt: at }, now)
    return status === 'running'
      ? jobState({ status, progressedAt: at }, now)
      : transferState({ status, createdAt: at }, now)
  }
  const past = (at: Date, ms: number) => new Date(at.getTime() + ms)
  for (const [status, minutes] of [
    ['started', 30],
    ['running', 10],
    ['open', 6],
  ] as const) {
    expect(stateOf(status, NOW, past(NOW, minutes * 60_000))).toBe(status)
    expect(stateOf(status, NOW, past(NOW, minutes * 60_000 + 1))).not.toBe(status)
  }
  const [progress, accepted] = [before(180), before(7)]
  expect((await lists(past(progress, 30 * 60_000))).stalled).toBe(0)
  expect((await lists(past(progress, 30 * 60_000 + 1))).stalled).toBe(1)
  expect((await lists(past(accepted, 6 * 60_000))).open).toBe(0)
  expect((await lists(past(accepted, 6 * 60_000 + 1))).open).toBe(1)
})

test.each(['Still', 'Open', 'Failed'])('describes a batch on its page as on the overview: %s', async (name) => {
  const { items } = await readAttention(db, NOW)
  const item = items.find(({ batch: of }) => of?.name === name)
  expect(await readAttentionOf(db, NOW, { batch: item?.batch?.id ?? '' })).toEqual([item])
})

const VIEW = { now: NOW, network: 'local' }

test('explains a failed payout once', async () => {
  const { rows } = await database.pool.query(`SELECT id FROM batches WHERE name = 'Failed'`)
  const payouts = await readList(
    PAYOUTS,
    { db, now: NOW },
    readFilters(PAYOUTS.filters, { batch: rows[0].id }).filters,
    {},
  )
  const shown = payouts.rows.map((row) => {
    const cells = PAYOUT_LIST.columns.flatMap(({ head, cell, beneath }) => {
      const content = [cell?.(row, VIEW), beneath?.(row, VIEW)]
      return cell
        ? [[head, renderToStaticMarkup(createElement('div', {}, ...content)).replace(/<[^>]+>/g, '')] as const]
        : []
    })
    return Object.fromEntries(cells)
  })
  expect(shown).toMatchObject([
    { Contractor: expect.stringMatching(/^Alanit expired .* nothing was paid$/) },
    { Contractor: 'Edsgerfailed' },
  ])
})

test('reads traffic for 24 hours or 30 days, and counts an expired transfer as failed', async () => {
  const day = await readTraffic(db, NOW, '24h')
  expect(day.parts).toHaveLength(24)
  expect(day.parts.at(-1)).toMatchObject({ at: new Date('2026-11-20T12:00:00Z'), succeeded: 1, failed: 0, open: 1 })
  expect(day.parts.at(-2)).toMatchObject({ succeeded: 0, failed: 2, open: 0, medianSeconds: undefined })
  expect([day.medianSeconds, day.slowSeconds]).toEqual([60, 60])
  const month = await readTraffic(db, NOW, '30d')
  expect(month.parts).toHaveLength(30)
  expect(month.parts.at(-1)).toMatchObject({ at: new Date('2026-11-20T00:00:00Z'), succeeded: 2, failed: 2, open: 1 })
  expect(month.parts.reduce((sum, { failed }) => sum + failed, 0)).toBe(3)
  const deposits = (['open', 'succeeded'] as const).map((status) =>
    transferRow({ kind: 'deposit', account: 'GFAUCET', status, createdAt: NOW }),
  )
  await insertRows(db, { transfers: deposits })
  expect(await readTraffic(db, NOW, '24h')).toEqual(day)
  const nothing = await readTraffic(db, new Date('2030-01-01T00:00:00Z'))
  expect([nothing.medianSeconds, nothing.parts.every(({ succeeded }) => succeeded === 0)]).toEqual([undefined, true])
})

const listJobItems = async () => (await readAttention(db, NOW)).items.filter(({ page }) => page.startsWith('/jobs'))

test('lists a failed or stalled relay job with its organisation and users, until it is acknowledged', async () => {
  const failedJob = jobRow({ status: 'failed', error: 'transfer 0: no channel has enough', createdAt: before(20) })
  const stalledJob = jobRow({ userSub: 'bob', createdAt: before(20) })
  const short = { outcome: 'failed' as const, error: 'channels-short', unable: ['GONE', 'GTWO'] }
  const item = { recipient: 'GHEDY', queuedAt: before(20) }
  await insertRows(db, {
    identities: [identityRow({ kind: 'idp', sub: 'ada', email: 'ada@northwind.example', organisation })],
    contractors: [contractorRow({ organisation, name: 'Hedy', address: 'GHEDY' })],
    jobs: [failedJob, stalledJob],
    items: [
      ...[0, 1].map((position) => itemRow({ ...item, ...short, job: failedJob.id, position })),
      itemRow({ ...item, job: stalledJob.id, quotaAccount: 'x' }),
    ],
  })
  const [failed, still, ...others] = (await listJobItems()).toSorted((one, other) => other.what.localeCompare(one.what))
  expect(others).toEqual([])
  expect(failed).toMatchObject({
    name: `Relay job ${failedJob.id.slice(0, 8)}`,
    what: '2 of 2 transfers failed',
    why: 'no relay channel had enough USDC',
    actor: 'operator',
    remedy:
      'Ask the employer to pay only those payees, from its own balance and in a batch of payouts. A new job would begin with other payees, who may have been paid. For later jobs, send USDC by confidential transfer to the relay channel GONE.',
    organisation: { name: 'Northwind' },
    users: [{ sub: 'ada', email: 'ada@northwind.example' }],
    contractors: [{ name: 'Hedy' }],
  })
  const bob = [{ sub: 'bob', email: null }]
  expect(still).toMatchObject({
    what: '1 transfer unfinished',
    isOngoing: true,
    users: bob,
    why: '1 waiting for a channel; no relay is running',
    remedy: 'Run npm run relay on the relay’s host.',
  })
  for (const one of [failed, still]) expect(await dismiss(one)).toBe(true)
  expect(await listJobItems()).toEqual([])
  expect(await readAttentionOf(db, NOW, { job: failedJob.id })).toMatchObject([
    { what: failed?.what, acknowledgement: {} },
  ])
})

const ADA = { kind: 'operator', sub: 'Ada Operator' } as const

/** Acknowledges an item as the overview shows it. */
function dismiss(item: Attention | undefined) {
  const { condition = 'jobFailed', subject = '', lastEvent = NOW } = item?.acknowledgeable ?? {}
  return acknowledge({ db, now: NOW, actor: ADA }, { condition, subject, seen: lastEvent, note: 'told the employer' })
}

test('hides an acknowledged item until something new happens, and audits who acknowledged it and why', async () => {
  const find = async () => (await readAttention(db, NOW)).items.find(({ batch: of }) => of?.name === 'Old')
  const item = await find()
  const id = item?.batch?.id ?? ''
  expect(await dismiss(item)).toBe(true)
  expect(await find()).toBeUndefined()
  const acknowledgement = { note: 'told the employer', operator: 'Ada Operator', at: NOW }
  expect(await readAttentionOf(db, NOW, { batch: id })).toEqual([{ ...item, acknowledgement }])
  const { rows } = await database.pool.query(
    `SELECT * FROM audit_log WHERE action = 'attention.acknowledged' AND subject_id = $1`,
    [id],
  )
  expect(rows).toMatchObject([
    {
      organisation,
      actor_sub: 'Ada Operator',
      detail: { condition: 'payoutsFailed', note: 'told the employer' },
    },
  ])
  await database.pool.query(`UPDATE batches SET failed_count = 2, payout_count = 2 WHERE id = $1`, [id])
  await payout(id, 'Barbara', { status: 'failed', transfer: 'failed', at: 30, settled: 29, error: 'failed' })
  expect(await find()).toMatchObject({ what: '2 of 2 payouts failed', acknowledgement: null })
  // A page that was opened before the second failure acknowledges only what it shows.
  await dismiss(item)
  expect(await find()).toBeDefined()
})

test('acknowledges nothing of a record that does not exist', async () => {
  const seen = { seen: NOW, note: 'gone' }
  for (const condition of ['payoutsFailed', 'outcomeUnknown', 'jobStalled'] as const) {
    for (const subject of [crypto.randomUUID(), 'x']) {
      expect(await acknowledge({ db, now: NOW, actor: ADA }, { condition, subject, ...seen })).toBe(false)
    }
  }
})

test('lists a run whose payout is still ready, until a later run has it', async () => {
  const id = await batch('Run', 'started', 2, [1, 0, 0])
  const contractor = contractorRow({ organisation, name: 'Lynn' })
  const ready = payoutRow({ organisation, batch: id, contractor: contractor.id, status: 'ready' })
  const run = (status: 'failed' | 'completed', minutes: number) =>
    jobRow({
      ...{ status, userKind: 'ledger', batch: id, manifest: 'm', signature: 's', quotaDay: '2026-11-20' },
      createdAt: before(minutes),
    })
  const [first, second] = [run('failed', 20), run('completed', 10)]
  const item = { payout: ready.id, spender: 'G', outcome: 'failed', error: 'manifest-invalid' } as const
  await insertRows(db, {
    contractors: [contractor],
    payouts: [ready],
    jobs: [first],
    items: [itemRow({ job: first.id, ...item })],
  })
  expect(await listJobItems()).toMatchObject([
    {
      key: `jobFailed ${first.id}`,
      batch: { id, name: 'Run' },
      what: '1 of 1 transfer of its run failed',
      organisation: { id: organisation },
    },
  ])
  await insertRows(db, { jobs: [second], items: [itemRow({ job: second.id, ...item })] })
  expect(await listJobItems()).toEqual([])
})

test('lists a batch that the relay stopped paying as its run, and asks the employer for nothing', async () => {
  const id = await batch('Relayed', 'started', 60, [1, 0, 0])
  const contractor = contractorRow({ organisation, name: 'Jean' })
  const ready = payoutRow({ organisation, batch: id, contractor: contractor.id, status: 'ready' })
  const terms = { batch: id, manifest: 'm', signature: 's', quotaDay: '2026-11-20' }
  const run = jobRow({ ...terms, userKind: 'ledger', userSub: 'GRUN', createdAt: before(60) })
  const payment = { job: run.id, payout: ready.id, spender: 'G', queuedAt: before(60) }
  const item = itemRow(payment)
  const ended = itemRow({ ...payment, position: 1, outcome: 'failed', settledAt: before(40) })
  await insertRows(db, { contractors: [contractor], payouts: [ready], jobs: [run], items: [item, ended] })
  const { items } = await readAttention(db, NOW)
  const own = items.filter(({ batch: of }) => of?.id === id)
  expect(own).toMatchObject([
    { key: `jobStalled ${run.id}`, what: '1 transfer of its run unfinished', since: before(40) },
  ])
  expect(own[0]?.organisation?.name).toBe('Northwind')
  expect(own[0]).not.toHaveProperty('request')
  expect(await readAttentionOf(db, NOW, { batch: id })).toEqual(own)
})

test('names what an overdue call does, and the account that sent it', async () => {
  const calls = (['set_spender', 'register'] as const).map((kind) =>
    transferRow({ kind, account: `GCALLER ${kind}`, recipient: `GAAA${'B'.repeat(48)}CCCC`, createdAt: before(9) }),
  )
  await insertRows(db, {
    transfers: calls,
    identities: [identityRow({ kind: 'ledger', sub: 'GCALLER set_spender', organisation })],
    contractors: [contractorRow({ organisation, name: 'Annie', address: `GAAA${'B'.repeat(48)}CCCC` })],
  })
  const items = (await listWith('transferOverdue')).filter(({ key }) => calls.some(({ id }) => key.endsWith(id)))
  expect(items.map(({ what }) => what).sort()).toEqual([
    'delegation to GAAA…CCCC open',
    'registration of GAAA…CCCC open',
  ])
  const [delegation, registration] = items.toSorted((one, other) => one.what.localeCompare(other.what))
  expect(registration?.users).toEqual([{ sub: 'GCALLER register', email: null }])
  // An account that is a user or a contractor is named.
  expect(delegation?.organisation?.name).toBe('Northwind')
  expect(registration?.contractors?.map(({ name }) => name)).toEqual(['Annie'])
  for (const item of items) expect(`${item.why} ${item.remedy}`).not.toContain('paid')
  await database.pool.query(`UPDATE transfers SET status = 'expired', settled_at = $1 WHERE account LIKE 'GCALLER%'`, [
    NOW,
  ])
})

test('names a run whose rows differ from its manifest, for the operator', async () => {
  const run = jobRow({ status: 'failed', error: 'transfer 0: allowance-short', createdAt: before(20) })
  const errors = ['allowance-short', 'manifest-invalid']
  const items = errors.map((error, position) =>
    itemRow({ job: run.id, position, recipient: 'GRUN', queuedAt: before(20), outcome: 'failed', error }),
  )
  await insertRows(db, { jobs: [run], items })
  const { items: listed } = await readAttention(db, NOW)
  expect(listed.find(({ key }) => key === `jobFailed ${run.id}`)).toMatchObject({
    what: '2 of 2 transfers failed',
    why: expect.stringContaining('manifest-invalid'),
    remedy: expect.stringMatching(/by a contact that is not from this service, to revoke .* pay nothing of it\.$/),
    telling: expect.stringMatching(/^Please revoke the delegations of this batch, and neither run nor pay it/),
    actor: 'operator',
  })
})

test('has no payee paid again while payments are stopped, because a channel may have paid it', async () => {
  const read = async () => {
    const { items } = await readAttention(db, NOW)
    return items.filter(({ batch: of }) => of?.name === 'Still' || of?.name === 'Failed')
  }
  const before = await read()
  expect(before.map(({ request }) => request)).toEqual([
    expect.stringContaining('send'),
    expect.stringContaining('send'),
  ])
  await db.insert(paymentStops).values({ token: 'C', since: NOW })
  for (const item of await read()) {
    expect(item).toMatchObject({
      actor: 'operator',
      remedy: expect.stringMatching(/^Wait until payments go on/),
    })
    expect(item.request).toBeUndefined()
  }
  await db.update(paymentStops).set({ since: null })
  expect(await read()).toEqual(before)
  await db.delete(relayChannels)
  expect(await read()).toEqual(before)
})

test('names the payees of a failed job by address if they are no contractors', async () => {
  const job = jobRow({ userSub: 'ada', status: 'failed', createdAt: before(20) })
  const items = ['GHEDY', ...Array.from({ length: 5 }, (_, n) => `GOTHER${n}`)].map((recipient, position) =>
    itemRow({ job: job.id, position, recipient, queuedAt: before(20), outcome: 'failed', error: 'e' }),
  )
  await insertRows(db, { jobs: [job], items })
  expect(await readAttentionOf(db, NOW, { job: job.id })).toMatchObject([
    { contractors: [{ name: 'Hedy' }], recipients: ['GOTHER0', 'GOTHER1', 'GOTHER2'], moreContractors: 2 },
  ])
})

test('says what the lines of a stalled job wait for, and names the next step by the state of the channels', async () => {
  const job = jobRow({ createdAt: before(20) })
  const [leased, sent] = [2, 3]
  const items = [0, 1, leased, sent].map((position) =>
    itemRow({
      ...{ job: job.id, position, queuedAt: before(20) },
      ...(position === leased && { channel: 'GLEASED', leasedUntil: new Date('2100-01-01') }),
    }),
  )
  const transfer = transferRow({ account: 'GSENT', lineJob: job.id, linePosition: sent, createdAt: NOW })
  await insertRows(db, { jobs: [job], items, transfers: [transfer] })
  const read = async () => {
    const [item] = await readAttentionOf(db, NOW, { job: job.id })
    return [item?.why.replace(/^.*; /, ''), item?.remedy]
  }
  expect((await readAttentionOf(db, NOW, { job: job.id }))[0]?.why).toMatch(
    /^2 waiting for a channel; 1 being prepared; 1 sent, without a result; no relay is running$/,
  )
  const channel = { token: 'C', seenAt: new Date() }
  await db.insert(relayChannels).values({ ...channel, address: 'GFIT', problem: null })
  expect(await read()).toEqual(['1 of 1 channels can pay, 0 are paused', expect.stringContaining(`log for ${job.id}`)])
  await db.update(relayChannels).set({ paused: true })
  expect(await read()).toEqual(['0 of 1 channels can pay, 1 are paused', 'Resume a paused channel on Jobs.'])
  await db.update(relayChannels).set({ paused: false, problem: 'balance' })
  expect(await read()).toEqual(['0 of 1 channels can pay, 0 are paused', expect.stringMatching(/^Remove the problem/)])
  const stop = { since: NOW }
  const target = paymentStops.token
  await db
    .insert(paymentStops)
    .values({ token: 'C', ...stop })
    .onConflictDoUpdate({ target, set: stop })
  expect(await read()).toEqual(['0 of 1 channels can pay, 0 are paused', 'Payments are stopped: see the overview.'])
  await db.delete(relayChannels)
  expect(await read()).toEqual(['no relay is running', 'Payments are stopped: see the overview.'])
  await db.update(paymentStops).set({ since: null })
})

test('counts for a stalled run only the channels that it names, which need no balance', async () => {
  const id = await batch('Named', 'started', 60, [1, 0, 0])
  const contractor = contractorRow({ organisation, name: 'Karen' })
  const ready = payoutRow({ organisation, batch: id, contractor: contractor.id, status: 'ready' })
  const terms = { batch: id, manifest: 'm', signature: 's', quotaDay: '2026-11-20', userKind: 'ledger' as const }
  const run = jobRow({ ...terms, createdAt: before(60) })
  const item = itemRow({ job: run.id, payout: ready.id, spender: 'GNAMED', queuedAt: before(40) })
  await insertRows(db, { contractors: [contractor], payouts: [ready], jobs: [run], items: [item] })
  const channel = { token: 'C', seenAt: new Date(), runs: true }
  await db.insert(relayChannels).values([
    { ...channel, address: 'GNAMED', problem: 'balance' },
    { ...channel, address: 'GOTHER', problem: null, paused: true },
  ])
  const [stalled] = await readAttentionOf(db, NOW, { batch: id })
  expect(stalled?.why).toBe('1 waiting for a channel; 1 of 1 channels can pay, 0 are paused')
  await db
    .update(relayChannels)
    .set({ seenAt: before(9) })
    .where(eq(relayChannels.address, 'GNAMED'))
  expect(await readAttentionOf(db, NOW, { batch: id })).toMatchObject([
    {
      why: '1 waiting for a channel; no relay runs the channels that the run names',
      remedy: expect.stringMatching(/^Start the relays whose CHANNEL_SEEDS contain/),
    },
  ])
  await db.delete(relayChannels)
})

test.each([
  [['unknown'], '1 of 1 transfer has an unknown outcome'],
  [['unknown', 'failed', 'unknown'], '1 of 3 transfers failed, 2 have an unknown outcome'],
] as const)(
  'counts unknown outcomes apart from failures, and has them checked before anything is paid: %j',
  async (ends, what) => {
    const job = jobRow({ status: 'failed', createdAt: before(20) })
    const items = ends.map((outcome, position) => itemRow({ job: job.id, position, outcome, queuedAt: before(20) }))
    await insertRows(db, { jobs: [job], items })
    const [item] = await readAttentionOf(db, NOW, { job: job.id })
    expect(item?.what).toBe(what)
    expect(item?.why).toContain('the ledger’s history no longer shows whether it was paid (history-lost)')
    expect(item?.remedy).toMatch(/check with the payees which payments arrived/)
  },
)

test('changes the pulse with every record, and reports whether work is in progress', async () => {
  const before = await readPulse(db)
  expect(before.isOpen).toBe(true)
  expect(await readPulse(db)).toEqual(before)
  await recordAudit(db, NOW, {
    organisation,
    actor: { kind: 'service', sub: 'test' },
    action: 'batch.created',
    subject: 'x',
  })
  const after = await readPulse(db)
  expect(after.version).not.toBe(before.version)
  await database.pool.query(`UPDATE relay_lines SET queued_at = queued_at + interval '1 second' WHERE outcome IS NULL`)
  expect((await readPulse(db)).version).not.toBe(after.version)
})

test('lists a payout whose transfer can no longer be decided', async () => {
  const id = await batch('Lost', 'started', 900, [1, 0, 0])
  await payout(id, 'Hedy', { status: 'pending', transfer: 'unknown', at: 800, settled: 700 })
  const { items } = await readAttention(db, NOW)
  const [item] = items.filter(({ batch: of }) => of?.name === 'Lost')
  expect([item?.what, item?.contractors?.map(({ name }) => name)]).toEqual(['unknown whether Hedy was paid', ['Hedy']])
  // Once that is acknowledged, no employer is asked to send a payout that may have been paid.
  expect(await dismiss(item)).toBe(true)
  expect((await readAttention(db, NOW)).items.filter(({ batch: of }) => of?.name === 'Lost')).toEqual([])
})

test('counts failed batches beyond the 20 listed ones, including old ones, but not on the page of one batch', async () => {
  for (let n = 0; n < 24; n += 1) {
    const id = await batch(`Many ${n}`, 'failed', 100, [1, 0, 1])
    await payout(id, 'Alonzo', { status: 'failed', transfer: 'failed', at: 10, settled: 9 - n / 10, error: 'failed' })
  }
  const { items, otherFailedBatches } = await readAttention(db, NOW)
  const listed = items.flatMap(({ key, batch: of }) => (key.startsWith('payoutsFailed ') ? [of?.name] : []))
  expect(listed.toSorted()).toEqual(Array.from({ length: 20 }, (_, n) => `Many ${n + 4}`).toSorted())
  // Four of these, and the two named Failed and Old.
  expect(otherFailedBatches).toBe(6)
  const shown = renderToStaticMarkup(
    createElement(AttentionList, { items, otherFailedBatches, network: 'local', now: NOW }),
  )
  expect(shown.replace(/<[^>]+>/g, '')).toMatch(/6 more batches have payouts that failed$/)
  const { rows } = await database.pool.query(`SELECT id FROM batches WHERE name = 'Many 0'`)
  const queries = await database.capture(async () => {
    expect(await readAttentionOf(db, NOW, { batch: rows[0].id })).toMatchObject([{ batch: { name: 'Many 0' } }])
  })
  expect(queries.filter(({ query }) => /^select count\(\*\) from "batches"/.test(query))).toEqual([])
})

/** Creates payouts without a transfer that failed that many minutes ago, each for a different contractor. */
async function fail(of: string, name: string, count: number, at: number) {
  const contractors = Array.from({ length: count }, (_, n) => contractorRow({ organisation, name: `${name} ${n + 1}` }))
  const failure = { organisation, batch: of, status: 'failed', error: 'failed', createdAt: before(at) } as const
  const payouts = contractors.map(({ id }) => payoutRow({ ...failure, contractor: id }))
  await insertRows(db, { contractors, payouts })
  await move(of, before(at), true)
}

test('counts every failed payout of a batch, however many or old, and hides no other batch', async () => {
  const large = await batch('Large', 'started', 10, [4_000, 0, 1_500])
  await fail(large, 'Payee', 1_500, 3)
  const partly = await batch('Partly', 'started', 20_000, [3, 0, 2])
  await fail(partly, 'Early', 1, 15_000)
  await fail(partly, 'Late', 1, 4)
  const describeItem = (listed: readonly Attention[], name: string) => {
    const [item] = listed.filter(({ batch: of }) => of?.name === name)
    const names = item?.contractors?.map(({ name: contractor }) => contractor.replace(/\d+/, 'n'))
    return [item?.what, names, item?.moreContractors, item?.since]
  }
  const { items } = await readAttention(db, NOW)
  for (const [id, name, ...words] of [
    [large, 'Large', '1500 of 4000 payouts failed', Array(4).fill('Payee n'), 1_496, before(3)],
    [partly, 'Partly', '2 of 3 payouts failed', ['Late n', 'Early n'], 0, before(15_000)],
  ] as const) {
    expect(describeItem(items, name)).toEqual(words)
    expect(describeItem(await readAttentionOf(db, NOW, { batch: id }), name)).toEqual(words)
  }
})

test('lists the 20 jobs with failed lines that ended last, and reads no lines of other jobs', async () => {
  const jobs = Array.from({ length: 22 }, (_, n) =>
    jobRow({ userSub: `user ${n}`, status: 'failed', createdAt: before(10), endedAt: before(n / 60) }),
  )
  const itemsOf = ({ id: job }: { id: string }) => [
    itemRow({ job, position: 0, outcome: 'failed', error: 'failed' }),
    itemRow({ job, position: 1, outcome: 'paid' }),
  ]
  await insertRows(db, { jobs, items: jobs.flatMap(itemsOf) })
  const queries = await database.capture(async () => {
    const listed = (await listWith('jobFailed')).toReversed()
    expect(listed.map(({ key }) => key)).toEqual(jobs.slice(0, 20).map(({ id }) => `jobFailed ${id}`))
    expect(new Set(listed.map(({ what }) => what))).toEqual(new Set(['1 of 2 transfers failed']))
  })
  const reads = queries.filter(({ query }) => query.includes('count(*)') && query.includes('"relay_lines"'))
  const naming = (some: typeof jobs) => reads.filter(({ params }) => some.every(({ id }) => params.includes(id)))
  // How many lines the jobs have, and why some failed.
  expect(naming(jobs.slice(0, 20))).toHaveLength(2)
  expect([...naming(jobs.slice(20, 21)), ...naming(jobs.slice(21))]).toEqual([])
})

test('asks to check what has arrived before failed payouts are sent again that may have been paid', async () => {
  const id = await batch('Doubtful', 'failed', 60, [2, 0, 2])
  await payout(id, 'Replaced', { status: 'failed', transfer: 'expired', at: 55, settled: 45 })
  await payout(id, 'Refused', { status: 'failed', transfer: 'failed', at: 50, settled: 40 })
  const readRemedy = async () => (await readAttentionOf(db, NOW, { batch: id }))[0]?.remedy
  expect(await readRemedy()).toMatch(/^Ask the employer to send the 2 failed payouts again/)
  await database.pool.query(`UPDATE transfers SET result_code = 'txBadSeq' WHERE account = $1`, [`Replaced ${id}`])
  expect(await readRemedy()).toBe(
    'Ask the employer to check with the contractors which payments arrived; cancel the payouts of those, and send only the others again.',
  )
  await database.pool.query(`UPDATE batches SET failed_count = 0 WHERE id = $1`, [id])
})

test('lists what is left of a stalled batch beside its failures, and beside a failed run only the run', async () => {
  const id = await batch('Half', 'started', 300, [3, 1, 1])
  await payout(id, 'Lost', { status: 'failed', transfer: 'failed', at: 200, settled: 190 })
  await waiting(id, 'Left')
  // Before the other failures of this file, of which 20 are listed.
  await database.pool.query('UPDATE batches SET failed_at = $2 WHERE id = $1', [id, NOW])
  const [left] = await db
    .select()
    .from(payouts)
    .where(and(eq(payouts.batch, id), eq(payouts.status, 'ready')))
  const readKeys = async () => {
    const { items } = await readAttention(db, NOW)
    return items.filter((item) => item.batch?.id === id).map(({ key }) => key)
  }
  expect((await readKeys()).toSorted()).toEqual([`batchStalled ${id}`, `payoutsFailed ${id}`])
  const terms = { batch: id, manifest: 'm', signature: 's', quotaDay: '2026-11-20', userKind: 'ledger' as const }
  const run = jobRow({ ...terms, status: 'failed', createdAt: before(180), endedAt: NOW })
  const error = 'manifest-invalid'
  await insertRows(db, {
    jobs: [run],
    items: [
      itemRow({ job: run.id, payout: left?.id ?? '', spender: 'G', outcome: 'failed', error, queuedAt: before(180) }),
    ],
  })
  expect((await readKeys()).toSorted()).toEqual([`jobFailed ${run.id}`, `payoutsFailed ${id}`])
  // The run's rows may have been changed, so no employer is asked to pay another payout of the batch.
  const { items } = await readAttention(db, NOW)
  expect(items.find(({ key }) => key === `payoutsFailed ${id}`)).toMatchObject({
    remedy: 'Pay nothing of this batch: its run differs from what the employer has signed.',
    request: undefined,
  })
  expect((await readAttentionOf(db, NOW, { batch: id })).map(({ key }) => key)).toEqual([
    `jobFailed ${run.id}`,
    `payoutsFailed ${id}`,
  ])
})
