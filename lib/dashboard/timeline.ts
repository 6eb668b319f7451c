import { and, desc, eq, inArray, notInArray, type SQL } from 'drizzle-orm'
import { type AuditDetail, auditLog } from '#drizzle/schema/audit.ts'
import { AUDIT_ACTIONS, type AuditAction, type SubjectKind } from '#drizzle/schema/audit-actions.ts'
import { envelopes, transfers } from '#drizzle/schema/transfers.ts'
import { subjectKindOf } from '#lib/db/audit-log.ts'
import type { Database } from '#lib/db/connection.ts'
import { selectAudit } from './audit.ts'
import { type DescribedEntry, describeEntries } from './audit-words.ts'

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
interface AuditedEvent extends Pick<RowEvent, 'at' | 'tone'> {
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

/** What may have happened to a record: an event without a time has not, and a detail that is null is not known. */
interface PossibleEvent extends Omit<RowEvent, 'at' | 'detail'> {
  at: Date | null | false | undefined
  detail?: Record<string, string | number | null>
}

/** The events that have happened, with their known details. */
export const happened = (events: readonly PossibleEvent[]): RowEvent[] =>
  events.flatMap(({ at, detail = {}, ...event }) => {
    const known = Object.entries(detail).filter((entry): entry is [string, string | number] => entry[1] !== null)
    return at ? { ...event, at, detail: Object.fromEntries(known) } : []
  })

/** The actions of the audit log that a transfer's rows also show. */
export const TRANSFER_ACTIONS = ['transfer.sponsored', 'transfer.settled'] as const satisfies AuditAction[]

type TransferRow = typeof transfers.$inferSelect
type EnvelopeRow = typeof envelopes.$inferSelect

/** The events of a transfer and its envelopes, oldest first. */
function transferEvents(transfer: TransferRow, signed: readonly EnvelopeRow[]): RowEvent[] {
  const { id, status, hash, ledger, appliedAt, settledAt, resultCode: result, contractError, requestId } = transfer
  const of = { transfer: id }
  // The ledger cuts its close time to whole seconds, which may be before the transfer was sent.
  const endOfSecond = (appliedAt?.getTime() ?? 0) + 999
  const includedAt = new Date(Math.min(endOfSecond, settledAt?.getTime() ?? endOfSecond))
  return happened([
    ...signed.flatMap((envelope, index): PossibleEvent[] => {
      const { innerHash, outerHash, recordedAt, firstSentAt, lastSentAt, resultCode: code, refusedLedger } = envelope
      const sent = { ...of, hash: outerHash ?? innerHash }
      // The row names the request that began the transfer, with its first envelope.
      const recorded = { ...of, 'inner hash': innerHash, request: index === 0 ? requestId : null }
      return [
        { at: recordedAt, what: 'Recorded', detail: recorded },
        { at: firstSentAt, what: 'Sent to the network', detail: sent },
        {
          at: firstSentAt && lastSentAt && lastSentAt > firstSentAt && lastSentAt,
          what: 'Last resubmitted',
          detail: sent,
        },
        {
          at: code !== null && (lastSentAt ?? recordedAt),
          what: 'Refused by the network',
          tone: 'bad',
          detail: { ...of, code, ledger: refusedLedger },
        },
      ]
    }),
    {
      at: appliedAt && ledger !== null && includedAt,
      what: `Included in ledger ${ledger}`,
      detail: { ...of, hash, result, 'contract error': contractError },
    },
    { at: settledAt, what: `Settled: ${status}`, tone: status === 'succeeded' ? 'good' : 'bad', detail: of },
  ])
}

/** The events of transfers, by a condition on their rows. */
export async function readTransferEvents(db: Database, condition: SQL): Promise<RowEvent[]> {
  const rows = await db
    .select({ transfer: transfers, envelope: envelopes })
    .from(transfers)
    .leftJoin(envelopes, eq(envelopes.transfer, transfers.id))
    .where(condition)
    .orderBy(transfers.createdAt, envelopes.recordedAt, envelopes.innerHash)
  return [...Map.groupBy(rows, ({ transfer }) => transfer.id).values()].flatMap((group) => {
    const [first] = group
    return first
      ? transferEvents(
          first.transfer,
          group.flatMap(({ envelope }) => envelope ?? []),
        )
      : []
  })
}
