import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  batchRow,
  contractorRow,
  envelopeRow,
  insertRows,
  itemRow,
  jobRow,
  organisationRow,
  payoutRow,
  transferRow,
} from '#lib/cli/seed/rows.ts'
import {
  readBatchPage,
  readContractorPage,
  readJobPage,
  readOrganisationPage,
  readPayoutPage,
  readTransferPage,
} from '#lib/dashboard/record-pages.ts'
import { plainText } from '#lib/dashboard/sentence.ts'
import type { Timeline, TimelineEvent } from '#lib/dashboard/timeline.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import type { Database } from '#lib/db/connection.ts'
import { withLogFields } from '#lib/observability/log.ts'
import { cloneDatabase } from '../support/database.ts'

const NOW = new Date('2026-11-20T12:30:00Z')
const at = (seconds: number) => new Date(NOW.getTime() + seconds * 1000)
const INNER = 'a'.repeat(64)
const OUTER = 'b'.repeat(64)

const organisation = organisationRow()
const contractor = contractorRow({ organisation: organisation.id, createdAt: NOW, externalId: 'hr/1' })
const batch = batchRow({ organisation: organisation.id, externalId: 'payroll/11' })
const transfer = transferRow({
  status: 'failed',
  hash: OUTER,
  ledger: 7,
  appliedAt: at(8),
  settledAt: at(9),
  createdAt: at(0),
  resultCode: 'txFailed',
  contractError: 3506,
  organisation: organisation.id,
  requestId: 'payroll-7',
})
const payout = payoutRow({
  organisation: organisation.id,
  batch: batch.id,
  contractor: contractor.id,
  status: 'failed',
  transfer: transfer.id,
  error: 'failed',
  createdAt: at(-5),
  externalId: 'payroll/11/1',
})
const job = jobRow({ status: 'failed', createdAt: at(0), endedAt: at(9) })

let clone: Awaited<ReturnType<typeof cloneDatabase>>
let db: Database
beforeAll(async () => {
  clone = await cloneDatabase()
  db = await clone.store.database()
  const times = { recordedAt: at(0), firstSentAt: at(1), lastSentAt: at(6), refusedLedger: 5, resultCode: 'txBadSeq' }
  await insertRows(db, {
    organisations: [organisation],
    contractors: [contractor],
    batches: [batch],
    payouts: [payout],
    transfers: [{ ...transfer, payout: payout.id }],
    envelopes: [envelopeRow({ innerHash: INNER, outerHash: OUTER, transfer: transfer.id, ...times })],
    jobs: [job],
    items: [itemRow({ job: job.id, outcome: 'failed', error: 'no channel', queuedAt: at(0), settledAt: at(8) })],
  })
  const of = { organisation: organisation.id, actor: { kind: 'operator', sub: 'Ada' } as const }
  await recordAudit(db, at(3), { ...of, action: 'transfer.looked-up', subject: transfer.id })
  const detail = { transfer: transfer.id }
  await recordAudit(db, at(0), { ...of, action: 'transfer.sponsored', subject: INNER, detail })
  await recordAudit(db, at(9), { ...of, action: 'payout.failed', subject: payout.id })
  await withLogFields({ requestId: 'payroll-7' }, () =>
    recordAudit(db, at(0), { ...of, action: 'payout.claimed', subject: payout.id, detail }),
  )
  await recordAudit(db, at(20), {
    ...of,
    action: 'attention.acknowledged',
    subject: batch.id,
    detail: { condition: 'payoutsFailed', note: 'known' },
  })
})
afterAll(() => clone.drop())

const textOf = (event: TimelineEvent) => ('entry' in event ? plainText(event.entry.sentence) : event.what)
const texts = (page: { timeline: Timeline } | undefined) => page?.timeline.events.map(textOf)

test('tells how a transfer was recorded, sent, refused, included and settled, newest first', async () => {
  const page = await readTransferPage(db, transfer.id, NOW)
  expect(page?.timeline.events).toMatchObject([
    { at: at(9), what: 'Settled: failed', tone: 'bad', detail: {} },
    {
      at: new Date(at(8).getTime() + 999),
      what: 'Included in ledger 7',
      detail: { hash: OUTER, result: 'txFailed', 'contract error': 3506 },
    },
    { at: at(6), what: 'Refused by the network', detail: { code: 'txBadSeq', ledger: 5 } },
    { at: at(6), what: 'Last resubmitted', detail: { hash: OUTER } },
    { at: at(3), entry: { action: 'transfer.looked-up', actorSub: 'Ada' } },
    { at: at(1), what: 'Sent to the network', detail: { hash: OUTER } },
    { at: at(0), what: 'Recorded', detail: { 'inner hash': INNER, request: 'payroll-7' } },
  ])
  expect(page?.record).toMatchObject({ id: transfer.id, payout: payout.id, contractorName: contractor.name })
})

test('shows the transfers of a payout, the acknowledgements of a batch, and the items of a job', async () => {
  expect(texts(await readPayoutPage(db, payout.id))).toEqual([
    'The payout to Ada in batch “Payroll” failed',
    'Settled: failed',
    'Included in ledger 7',
    'Refused by the network',
    'Last resubmitted',
    'Sent to the network',
    'The transfer to Ada was recorded for the payout to Ada in batch “Payroll”',
    'Recorded',
    'Payout created',
  ])
  expect(texts(await readBatchPage(db, batch.id, NOW))).toEqual([
    'A notice about batch “Payroll” was acknowledged by Ada: “known”',
  ])
  expect(texts(await readJobPage(db, job.id, NOW))).toEqual(['Job failed', 'Transfer 1: failed', 'Job started'])
  expect((await readContractorPage(db, contractor.id))?.payouts).toMatchObject([{ id: payout.id }])
})

test('has the external ids of a contractor, a batch and a payout', async () => {
  const pages = [
    await readContractorPage(db, contractor.id),
    await readBatchPage(db, batch.id, NOW),
    await readPayoutPage(db, payout.id),
  ]
  expect(pages.map((page) => page?.record.externalId)).toEqual(['hr/1', 'payroll/11', 'payroll/11/1'])
})

test('links a payout to the runs that were to pay it', async () => {
  const other = payoutRow({
    organisation: organisation.id,
    batch: batch.id,
    contractor: contractor.id,
    status: 'canceled',
  })
  const terms = { manifest: 'm', signature: 's', quotaDay: '2026-11-20' }
  const run = jobRow({
    userKind: 'ledger',
    batch: batch.id,
    ...terms,
    status: 'failed',
    createdAt: at(0),
    endedAt: at(9),
  })
  const ended = { outcome: 'failed', error: 'seal-invalid', queuedAt: at(0), settledAt: at(5) } as const
  const item = itemRow({ job: run.id, payout: other.id, spender: 'G', ...ended })
  await insertRows(db, { payouts: [{ ...other, createdAt: at(-1) }], jobs: [run], items: [item] })
  expect((await readPayoutPage(db, other.id))?.timeline.events).toEqual([
    { at: at(5), what: 'Run: failed', tone: 'bad', detail: { job: run.id, error: 'seal-invalid' } },
    { at: at(0), what: 'Queued by a run', detail: { job: run.id } },
    { at: at(-1), what: 'Payout created', detail: {} },
  ])
})

test('names the request of each event that one caused', async () => {
  const { events = [] } = (await readPayoutPage(db, payout.id))?.timeline ?? {}
  const requestOf = (event: TimelineEvent) => ('entry' in event ? event.entry.requestId : event.detail.request)
  const caused = events.filter((event) => requestOf(event) === 'payroll-7').map(textOf)
  expect(caused).toEqual([expect.stringContaining('was recorded for the payout'), 'Recorded'])
})

test('names the record of each event of an organisation', async () => {
  expect(texts(await readOrganisationPage(db, organisation.id, NOW))).toEqual([
    'A notice about batch “Payroll” was acknowledged by Ada: “known”',
    'The payout to Ada in batch “Payroll” failed',
    'The transfer to Ada was looked up on the ledger for Ada',
    'The transfer to Ada was recorded for the payout to Ada in batch “Payroll”',
    'The transfer to Ada was accepted from Ada',
  ])
})

test('has no page for an unknown id', async () => {
  for (const id of [crypto.randomUUID(), 'x']) {
    expect(await readTransferPage(db, id, NOW)).toBeUndefined()
    expect(await readPayoutPage(db, id)).toBeUndefined()
    expect(await readBatchPage(db, id, NOW)).toBeUndefined()
    expect(await readJobPage(db, id, NOW)).toBeUndefined()
    expect(await readContractorPage(db, id)).toBeUndefined()
    expect(await readOrganisationPage(db, id, NOW)).toBeUndefined()
  }
})
