import { and, desc, eq, inArray, notInArray, type SQL } from 'drizzle-orm'
import { type AuditDetail, auditLog } from '#drizzle/schema/audit.ts'
import { AUDIT_ACTIONS, type AuditAction, type SubjectKind } from '#drizzle/schema/audit-actions.ts'
import { subjectKindOf } from '#lib/db/audit-log.ts'
import type { Database } from '#lib/db/connection.ts'
import { selectAudit } from './audit.ts'
import { type DescribedEntry, describeEntries } from './audit-words.ts'
import type { ItemLine, JobSummary } from './jobs.ts'
import { envelopeRows, transferRows } from './transfer-rows.ts'

/** Something that happened to a record, as its rows show. */
export interface RowEvent {
  at: Date
  what: string
  /** the colour of a final event */
  tone?: 'good' | 'bad'
  /** ids of other records, hashes, codes and reasons, by name */
  detail: AuditDetail
}

/** Something that happened to a record, as the audit log says. */
export interface AuditedEvent extends Pick<RowEvent, 'at' | 'tone'> {
  entry: DescribedEntry
}

export type TimelineEvent = RowEvent | AuditedEvent

/** The newest events of a record first. */
export interface Timeline {
  events: TimelineEvent[]
  /** whether there are older ones */
  hasMore: boolean
}

const EVENTS_SHOWN = 50

const TONES: Partial<Record<AuditAction, 'good' | 'bad'>> = {
  'payout.found-paid': 'bad',
  'batch.completed': 'good',
  'batch.failed': 'bad',
  'payout.paid': 'good',
  'payout.failed': 'bad',
  'transfer.refused': 'bad',
  'contractor.activated': 'good',
  'contractor.mail-failed': 'bad',
}

/** The audit entries of one record. Operators' acknowledgements have its id, too. */
export function ofRecord(kind: SubjectKind, ...ids: string[]): SQL | undefined {
  const actions = AUDIT_ACTIONS.filter((action) => [kind, 'attention'].includes(subjectKindOf(action)))
  return and(inArray(auditLog.action, actions), inArray(auditLog.subjectId, ids))
}

/** The audit entries of everything that belongs to an organisation. */
export const ofOrganisationRecords = (id: string): SQL => eq(auditLog.organisation, id)

/**
 * Reads a record's timeline: its entries in the audit log, and the events that its rows show.
 * @param given.events in the order in which they happened
 * @param given.without actions that `events` include
 */
export async function readTimeline(
  db: Database,
  entries: SQL | undefined,
  { events = [], without = [] }: { events?: readonly RowEvent[]; without?: readonly AuditAction[] } = {},
): Promise<Timeline> {
  const { action, sequence } = auditLog
  const lines = await selectAudit(db, and(entries, without.length > 0 ? notInArray(action, [...without]) : undefined))
    .orderBy(desc(sequence))
    .limit(EVENTS_SHOWN + 1)
  const audited = (await describeEntries(db, lines)).map((entry): AuditedEvent => {
    const tone = TONES[entry.action]
    return { at: entry.createdAt, entry, ...(tone && { tone }) }
  })
  const all = [...events, ...audited.toReversed()].sort((one, other) => one.at.getTime() - other.at.getTime())
  return { events: all.toReversed().slice(0, EVENTS_SHOWN), hasMore: all.length > EVENTS_SHOWN }
}

/** The request that caused an event, if one did. */
const requestOf = ({ requestId }: { requestId: string | null }): AuditDetail =>
  requestId === null ? {} : { request: requestId }

/** The actions of the audit log that a transfer's rows also show. */
export const TRANSFER_ACTIONS = ['transfer.sponsored', 'transfer.settled'] as const satisfies AuditAction[]

type TransferRow = typeof transferRows.$inferSelect
type EnvelopeRow = typeof envelopeRows.$inferSelect

/** The events of a transfer and its envelopes, oldest first. */
export function transferEvents(transfer: TransferRow, envelopes: readonly EnvelopeRow[]): RowEvent[] {
  const { id, status, hash, ledger, appliedAt, settledAt, resultCode, contractError } = transfer
  const of = { transfer: id }
  const signed = envelopes.flatMap((envelope, index): RowEvent[] => {
    const { innerHash, outerHash, recordedAt, firstSentAt, lastSentAt, resultCode: code, refusedLedger } = envelope
    const sent = { ...of, hash: outerHash ?? innerHash }
    const isRepeated = firstSentAt && lastSentAt && lastSentAt > firstSentAt
    return [
      // The row names the request that began the transfer, with its first envelope.
      {
        at: recordedAt,
        what: 'Recorded',
        detail: { ...of, 'inner hash': innerHash, ...(index === 0 && requestOf(transfer)) },
      },
      ...(firstSentAt ? [{ at: firstSentAt, what: 'Sent to the network', detail: sent }] : []),
      ...(isRepeated ? [{ at: lastSentAt, what: 'Last resubmitted', detail: sent }] : []),
      ...(code === null
        ? []
        : [
            {
              at: lastSentAt ?? recordedAt,
              what: 'Refused by the network',
              tone: 'bad' as const,
              detail: { ...of, code, ...(refusedLedger !== null && { ledger: refusedLedger }) },
            },
          ]),
    ]
  })
  const result = {
    ...(resultCode !== null && { result: resultCode }),
    ...(contractError !== null && { 'contract error': contractError }),
  }
  const tone = status === 'succeeded' ? 'good' : 'bad'
  // The ledger cuts its close time to whole seconds, which may be before the transfer was sent.
  const endOfSecond = (appliedAt?.getTime() ?? 0) + 999
  const includedAt = new Date(Math.min(endOfSecond, settledAt?.getTime() ?? endOfSecond))
  return [
    ...signed,
    ...(appliedAt && ledger !== null
      ? [{ at: includedAt, what: `Included in ledger ${ledger}`, detail: { ...of, ...(hash && { hash }), ...result } }]
      : []),
    ...(settledAt ? [{ at: settledAt, what: `Settled: ${status}`, tone, detail: of } as const] : []),
  ]
}

/** The events of transfers, by a condition on their rows. */
export async function readTransferEvents(db: Database, condition: SQL): Promise<RowEvent[]> {
  const rows = await db
    .select({ transfer: transferRows, envelope: envelopeRows })
    .from(transferRows)
    .leftJoin(envelopeRows, eq(envelopeRows.transfer, transferRows.id))
    .where(condition)
    .orderBy(transferRows.createdAt, envelopeRows.recordedAt, envelopeRows.innerHash)
  return [...Map.groupBy(rows, ({ transfer }) => transfer.id).values()].flatMap((group) => {
    const [first] = group
    const envelopes = group.flatMap(({ envelope }) => envelope ?? [])
    return first ? transferEvents(first.transfer, envelopes) : []
  })
}

type Line = Pick<ItemLine, 'position' | 'state' | 'sentAt' | 'settledAt' | 'error' | 'hash'>

/** The events of a relay job and of some of its lines, oldest first. */
export function jobEvents(
  job: Pick<JobSummary, 'createdAt' | 'endedAt' | 'status'>,
  shown: readonly Line[],
): RowEvent[] {
  const items = shown.flatMap(({ position, state, sentAt, settledAt, error, hash }): RowEvent[] => {
    const name = `Transfer ${position + 1}`
    const tone = state === 'paid' ? 'good' : 'bad'
    const detail = { ...(hash && { hash }), ...(error !== null && { error }) }
    return [
      ...(sentAt ? [{ at: sentAt, what: `${name} recorded`, detail: {} }] : []),
      ...(settledAt ? [{ at: settledAt, what: `${name}: ${state}`, tone, detail } as const] : []),
    ]
  })
  const { createdAt, endedAt, status } = job
  return [
    { at: createdAt, what: 'Job started', detail: {} },
    ...items,
    ...(endedAt
      ? [{ at: endedAt, what: `Job ${status}`, tone: status === 'completed' ? 'good' : 'bad', detail: {} } as const]
      : []),
  ]
}
