import { and, eq, type SQLWrapper, sql } from 'drizzle-orm'
import { acknowledgements } from '#drizzle/schema/audit.ts'
import { batches, identities } from '#drizzle/schema/directory.ts'
import { relayJobs } from '#drizzle/schema/relay.ts'
import { transfers } from '#drizzle/schema/transfers.ts'
import { webhooks } from '#drizzle/schema/webhooks.ts'
import { type Actor, recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { isId } from '#lib/directory/ids.ts'
import { JOB_PROGRESSED_AT } from './jobs.ts'

/**
 * The conditions of records that an operator can acknowledge: the record's type, and the stored time of the condition's
 * last event, which its page shows. It is null for a record that never had the condition. The conditions of the service
 * itself last until they are fixed.
 */
export const ACKNOWLEDGEABLE = {
  payoutsFailed: { record: 'batch', lastEvent: batches.failedAt },
  batchStalled: { record: 'batch', lastEvent: batches.progressedAt },
  transferOverdue: { record: 'transfer', lastEvent: transfers.createdAt },
  outcomeUnknown: { record: 'transfer', lastEvent: transfers.settledAt },
  foundPaid: { record: 'transfer', lastEvent: transfers.settledAt },
  jobFailed: { record: 'job', lastEvent: relayJobs.endedAt },
  jobStalled: { record: 'job', lastEvent: JOB_PROGRESSED_AT },
  webhookDisabled: { record: 'webhook', lastEvent: webhooks.disabledAt },
} as const satisfies Record<string, { record: 'batch' | 'job' | 'transfer' | 'webhook'; lastEvent: SQLWrapper }>
export type AcknowledgeableCondition = keyof typeof ACKNOWLEDGEABLE

const { condition, subject, seen } = acknowledgements

/** The condition that joins the acknowledgement of a record's condition, unless an event happened since. */
export const acknowledges = (of: { condition: SQLWrapper; id: SQLWrapper; lastEvent: SQLWrapper }) =>
  and(sql`${condition} = ${of.condition}`, sql`${subject} = ${of.id}`, sql`${seen} >= ${of.lastEvent}`)

/**
 * Acknowledges a condition of a record. Resolves to false if the record does not exist or never had the condition.
 * @param given.seen the last event that the operator's page showed. A later one reopens the condition. It is compared with
 *   the stored event and not with a clock: hosts' clocks differ, and a forged time must not hide what happens next
 */
export async function acknowledge(
  { db, now, actor }: { db: Database; now: Date; actor: Actor },
  given: { condition: AcknowledgeableCondition; subject: string; note: string; seen: Date },
): Promise<boolean> {
  if (!isId(given.subject)) return false
  return await transact(db, async (tx) => {
    const record = await findRecord(tx, given.condition, given.subject)
    if (!record?.lastEvent) return false
    const last = given.seen < record.lastEvent ? given.seen : record.lastEvent
    const row = { ...given, seen: last, operator: actor.sub, at: now }
    await tx
      .insert(acknowledgements)
      .values(row)
      .onConflictDoUpdate({
        target: [condition, subject],
        set: { note: row.note, operator: row.operator, at: now, seen: sql`greatest(${seen}, excluded.seen)` },
      })
    await recordAudit(tx, now, {
      organisation: record.organisation ?? undefined,
      actor,
      action: 'attention.acknowledged',
      subject: given.subject,
      detail: { condition: given.condition, note: given.note },
    })
    return true
  })
}

async function findRecord(db: Database, of: AcknowledgeableCondition, id: string) {
  const { record, lastEvent: event } = ACKNOWLEDGEABLE[of]
  const lastEvent = sql<Date | null>`${event}`.mapWith(seen)
  if (record === 'job') {
    const [job] = await db
      .select({ organisation: identities.organisation, lastEvent })
      .from(relayJobs)
      .leftJoin(identities, and(eq(identities.kind, relayJobs.userKind), eq(identities.sub, relayJobs.userSub)))
      .where(eq(relayJobs.id, id))
    return job
  }
  const table = { batch: batches, transfer: transfers, webhook: webhooks }[record]
  const [row] = await db.select({ organisation: table.organisation, lastEvent }).from(table).where(eq(table.id, id))
  return row
}
