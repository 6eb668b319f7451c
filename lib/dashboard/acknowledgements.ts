import { and, eq, gte, isNull, type SQLWrapper, sql } from 'drizzle-orm'
import { acknowledgements } from '#drizzle/schema/audit.ts'
import { batches, identities } from '#drizzle/schema/directory.ts'
import { batchJobs } from '#drizzle/schema/relay.ts'
import { transfers } from '#drizzle/schema/transfers.ts'
import { type Actor, recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { isId } from '#lib/directory/ids.ts'

/**
 * The conditions of records that an operator can acknowledge, with the record's type. The conditions of the service
 * itself last until they are fixed.
 */
export const ACKNOWLEDGEABLE = {
  payoutsFailed: 'batch',
  batchStalled: 'batch',
  transferOverdue: 'transfer',
  outcomeUnknown: 'transfer',
  jobFailed: 'job',
  jobStalled: 'job',
} as const
export type AcknowledgeableCondition = keyof typeof ACKNOWLEDGEABLE

/** Who acknowledged a condition, when and why. */
export interface Acknowledgement {
  note: string
  operator: string
  at: Date
}

const { condition, subject, note, operator, at, seen } = acknowledgements

/** The columns of an acknowledgement, for a query that joins the table. All are null if there is none. */
export const ACKNOWLEDGEMENT = { note, operator, at }

export const acknowledgementRows = acknowledgements

/** Joins the acknowledgement of a record's condition, unless `event` happened since. */
export function acknowledges(of: AcknowledgeableCondition, record: SQLWrapper, event: SQLWrapper) {
  return and(eq(condition, of), eq(subject, record), gte(seen, event))
}

export const isUnacknowledged = isNull(subject)

/**
 * Acknowledges a condition of a record. Resolves to false if the record does not exist.
 * @param given.seen the last event that the operator's page showed. A later one reopens the condition
 */
export async function acknowledge(
  { db, now, actor }: { db: Database; now: Date; actor: Actor },
  given: { condition: AcknowledgeableCondition; subject: string; note: string; seen: Date },
): Promise<boolean> {
  if (!isId(given.subject)) return false
  return await transact(db, async (tx) => {
    const record = await findOrganisation(tx, ACKNOWLEDGEABLE[given.condition], given.subject)
    if (!record) return false
    const row = { ...given, seen: given.seen < now ? given.seen : now, operator: actor.sub, at: now }
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

async function findOrganisation(
  db: Database,
  type: (typeof ACKNOWLEDGEABLE)[AcknowledgeableCondition],
  id: string,
): Promise<{ organisation: string | null } | undefined> {
  if (type === 'job') {
    const [job] = await db
      .select({ organisation: identities.organisation })
      .from(batchJobs)
      .leftJoin(identities, and(eq(identities.kind, batchJobs.userKind), eq(identities.sub, batchJobs.userSub)))
      .where(eq(batchJobs.id, id))
    return job
  }
  const table = type === 'batch' ? batches : transfers
  const [row] = await db.select({ organisation: table.organisation }).from(table).where(eq(table.id, id))
  return row
}
