import { eq } from 'drizzle-orm'
import { payouts } from '#drizzle/schema/directory.ts'
import { relayJobs, relayLines } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { isId } from '#lib/directory/ids.ts'
import type { Attention } from './attention.ts'
import { type BatchLine, findBatchLine } from './batches.ts'
import { type ContractorLine, findContractorLine } from './contractors.ts'
import { findJob, type ItemPage, type JobSummary, listItems } from './jobs.ts'
import type { PageRequest } from './list.ts'
import { findOrganisationLine, type OrganisationLine } from './organisations.ts'
import { readAttentionOf } from './overview.ts'
import { findPayoutLines, type PayoutLine } from './payouts.ts'
import {
  jobEvents,
  ofOrganisationRecords,
  ofRecord,
  type RowEvent,
  readTimeline,
  readTransferEvents,
  type Timeline,
  TRANSFER_ACTIONS,
} from './timeline.ts'
import { envelopeRows, transferRows } from './transfer-rows.ts'
import { findTransferLine, type TransferLine } from './transfers.ts'

/** The common content of all pages of records. */
export interface RecordPage<Row> {
  record: Row
  timeline: Timeline
  attention: Attention[]
}

export async function readTransferPage(
  db: Database,
  id: string,
  now: Date,
): Promise<RecordPage<TransferLine> | undefined> {
  const record = isId(id) ? await findTransferLine(db, id) : undefined
  if (!record) return undefined
  const hashes = await db
    .select({ hash: envelopeRows.innerHash })
    .from(envelopeRows)
    .where(eq(envelopeRows.transfer, id))
  const events = await readTransferEvents(db, eq(transferRows.id, id))
  // On a transfer's own page, its id is redundant.
  const own = events.map(({ detail: { transfer: _, ...detail }, ...event }): RowEvent => ({ ...event, detail }))
  const entries = ofRecord('transfer', id, ...hashes.map(({ hash }) => hash))
  const [timeline, attention] = await Promise.all([
    readTimeline(db, entries, { events: own, without: TRANSFER_ACTIONS }),
    readAttentionOf(db, now, { transfer: id }),
  ])
  return { record, timeline, attention }
}

export async function readPayoutPage(db: Database, id: string): Promise<RecordPage<PayoutLine> | undefined> {
  const [record] = isId(id) ? await findPayoutLines(db, eq(payouts.id, id), 1) : []
  if (!record) return undefined
  const created = { at: record.createdAt, what: 'Payout created', detail: {} }
  const events = [
    created,
    ...(await readRelayEvents(db, id)),
    ...(await readTransferEvents(db, eq(transferRows.payout, id))),
  ]
  return { record, timeline: await readTimeline(db, ofRecord('payout', id), { events }), attention: [] }
}

/** When runs queued a payout, and when they gave up on it. */
async function readRelayEvents(db: Database, payout: string): Promise<RowEvent[]> {
  const { job, outcome, error, queuedAt, settledAt } = relayLines
  const items = await db
    .select({ job, outcome, error, queuedAt, settledAt })
    .from(relayLines)
    .where(eq(relayLines.payout, payout))
  return items.flatMap((item): RowEvent[] => [
    { at: item.queuedAt, what: 'Queued by a run', detail: { job: item.job } },
    ...(item.settledAt && item.outcome !== 'paid'
      ? [
          {
            at: item.settledAt,
            what: `Run: ${item.outcome}`,
            tone: 'bad',
            detail: { job: item.job, ...(item.error !== null && { error: item.error }) },
          } as const,
        ]
      : []),
  ])
}

export async function readBatchPage(db: Database, id: string, now: Date): Promise<RecordPage<BatchLine> | undefined> {
  const record = await findBatchLine(db, id)
  if (!record) return undefined
  const [timeline, attention] = await Promise.all([
    readTimeline(db, ofRecord('batch', id), { events: await readRunEvents(db, id), without: ['batch.run'] }),
    readAttentionOf(db, now, { batch: id }),
  ])
  return { record, timeline, attention }
}

async function readRunEvents(db: Database, batch: string): Promise<RowEvent[]> {
  const { id, status, createdAt, endedAt } = relayJobs
  const runs = await db.select({ id, status, createdAt, endedAt }).from(relayJobs).where(eq(relayJobs.batch, batch))
  return runs.flatMap((run) => [
    { at: run.createdAt, what: 'Run started', detail: { job: run.id } },
    ...(run.endedAt ? [{ at: run.endedAt, what: `Run ${run.status}`, detail: { job: run.id } }] : []),
  ])
}

/** A job with a page of its items; the timeline has the events of these. */
export async function readJobPage(
  db: Database,
  id: string,
  now: Date,
  page: PageRequest = {},
): Promise<(RecordPage<JobSummary> & { items: ItemPage }) | undefined> {
  const record = isId(id) ? await findJob(db, id) : undefined
  if (!record) return undefined
  const items = await listItems(db, id, page)
  const [timeline, attention] = await Promise.all([
    readTimeline(db, ofRecord('attention', id), { events: jobEvents(record, items.items) }),
    readAttentionOf(db, now, { job: id }),
  ])
  return { record, timeline, attention, items }
}

/** A contractor with its newest payouts. A removed one still has a page: its payouts refer to it. */
export async function readContractorPage(
  db: Database,
  id: string,
): Promise<(RecordPage<ContractorLine> & { payouts: PayoutLine[] }) | undefined> {
  const record = isId(id) ? await findContractorLine(db, id) : undefined
  if (!record) return undefined
  const [timeline, newest] = await Promise.all([
    readTimeline(db, ofRecord('contractor', id)),
    findPayoutLines(db, eq(payouts.contractor, id), NEWEST_PAYOUTS),
  ])
  return { record, timeline, attention: [], payouts: newest }
}

export const NEWEST_PAYOUTS = 20

export async function readOrganisationPage(
  db: Database,
  id: string,
  now: Date,
): Promise<RecordPage<OrganisationLine> | undefined> {
  const record = isId(id) ? await findOrganisationLine(db, id, now) : undefined
  if (!record) return undefined
  return { record, timeline: await readTimeline(db, ofOrganisationRecords(id)), attention: [] }
}
