import { eq } from 'drizzle-orm'
import { auditLog } from '#drizzle/schema/audit.ts'
import { payouts } from '#drizzle/schema/directory.ts'
import { relayJobs, relayLines } from '#drizzle/schema/relay.ts'
import { envelopes, transfers } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { isId } from '#lib/directory/ids.ts'
import type { Attention } from './attention.ts'
import { findBatchLine } from './batches.ts'
import { findContractorLine } from './contractors.ts'
import { findJob, type ItemLine, type JobSummary, listItems } from './jobs.ts'
import type { PageRequest } from './list.ts'
import { findOrganisationLine } from './organisations.ts'
import { readAttentionOf } from './overview.ts'
import { findPayoutLines } from './payouts.ts'
import {
  happened,
  ofRecord,
  type RowEvent,
  readTimeline,
  readTransferEvents,
  type Timeline,
  TRANSFER_ACTIONS,
} from './timeline.ts'
import { findTransferLine } from './transfers.ts'
import { listFailures, listWebhookLines } from './webhooks.ts'

/** The common content of all pages of records. */
export interface RecordPage<Row> {
  record: Row
  timeline: Timeline
  attention: Attention[]
}

export async function readTransferPage(db: Database, id: string, now: Date) {
  const record = isId(id) ? await findTransferLine(db, id) : undefined
  if (!record) return undefined
  const { transfer, innerHash } = envelopes
  const hashes = await db.select({ innerHash }).from(envelopes).where(eq(transfer, id))
  // On a transfer's own page, its id is redundant.
  const events = (await readTransferEvents(db, eq(transfers.id, id))).map(
    ({ detail: { transfer: _, ...detail }, ...event }): RowEvent => ({ ...event, detail }),
  )
  const entries = ofRecord('transfer', id, ...hashes.map((row) => row.innerHash))
  const [timeline, attention] = await Promise.all([
    readTimeline(db, entries, { events, without: TRANSFER_ACTIONS }),
    readAttentionOf(db, now, { transfer: id }),
  ])
  return { record, timeline, attention }
}

export async function readPayoutPage(db: Database, id: string) {
  const [record] = isId(id) ? await findPayoutLines(db, eq(payouts.id, id), 1) : []
  if (!record) return undefined
  const events = [
    ...happened([{ at: record.createdAt, what: 'Payout created' }]),
    ...(await readRelayEvents(db, id)),
    ...(await readTransferEvents(db, eq(transfers.payout, id))),
  ]
  return { record, timeline: await readTimeline(db, ofRecord('payout', id), { events }), attention: [] }
}

/** When runs queued a payout, and when they gave up on it. */
async function readRelayEvents(db: Database, payout: string): Promise<RowEvent[]> {
  const { job, outcome, error, queuedAt, settledAt } = relayLines
  const lines = { job, outcome, error, queuedAt, settledAt }
  const items = await db.select(lines).from(relayLines).where(eq(relayLines.payout, payout))
  return items.flatMap(({ job, error, ...item }) =>
    happened([
      { at: item.queuedAt, what: 'Queued by a run', detail: { job } },
      {
        at: item.outcome !== 'paid' && item.settledAt,
        what: `Run: ${item.outcome}`,
        tone: 'bad',
        detail: { job, error },
      },
    ]),
  )
}

export async function readBatchPage(db: Database, id: string, now: Date) {
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
  const runs = await db
    .select({ job: id, status, createdAt, endedAt })
    .from(relayJobs)
    .where(eq(relayJobs.batch, batch))
  return runs.flatMap(({ job, ...run }) =>
    happened([
      { at: run.createdAt, what: 'Run started', detail: { job } },
      { at: run.endedAt, what: `Run ${run.status}`, detail: { job } },
    ]),
  )
}

/** A job with a page of its items; the timeline has the events of these. */
export async function readJobPage(db: Database, id: string, now: Date, page: PageRequest = {}) {
  const record = isId(id) ? await findJob(db, id) : undefined
  if (!record) return undefined
  const items = await listItems(db, id, page)
  const [timeline, attention] = await Promise.all([
    readTimeline(db, ofRecord('attention', id), { events: jobEvents(record, items.items) }),
    readAttentionOf(db, now, { job: id }),
  ])
  return { record, timeline, attention, items }
}

const toneOf = (isGood: boolean) => (isGood ? 'good' : 'bad')

/** The events of a relay job and of some of its items, oldest first. */
const jobEvents = ({ createdAt, endedAt, status }: JobSummary, items: readonly ItemLine[]): RowEvent[] =>
  happened([
    { at: createdAt, what: 'Job started' },
    ...items.flatMap(({ position, state, sentAt, settledAt, error, hash }) => {
      const name = `Transfer ${position + 1}`
      return [
        { at: sentAt, what: `${name} recorded` },
        { at: settledAt, what: `${name}: ${state}`, tone: toneOf(state === 'paid'), detail: { hash, error } } as const,
      ]
    }),
    { at: endedAt, what: `Job ${status}`, tone: toneOf(status === 'completed') },
  ])

/** A contractor with its newest payouts. A removed one still has a page: its payouts refer to it. */
export async function readContractorPage(db: Database, id: string) {
  const record = isId(id) ? await findContractorLine(db, id) : undefined
  if (!record) return undefined
  const [timeline, newest] = await Promise.all([
    readTimeline(db, ofRecord('contractor', id)),
    findPayoutLines(db, eq(payouts.contractor, id), NEWEST_PAYOUTS),
  ])
  return { record, timeline, attention: [], payouts: newest }
}

export const NEWEST_PAYOUTS = 20

/** The timeline of an organisation has the entries of everything that belongs to it. */
export async function readOrganisationPage(db: Database, id: string, now: Date) {
  const record = isId(id) ? await findOrganisationLine(db, id, now) : undefined
  if (!record) return undefined
  const [timeline, attention, webhooks, failures] = await Promise.all([
    readTimeline(db, eq(auditLog.organisation, id)),
    readAttentionOf(db, now, { organisation: id }),
    listWebhookLines(db, id),
    listFailures(db, id),
  ])
  return { record, timeline, attention, webhooks, failures }
}
