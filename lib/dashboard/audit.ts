import { and, eq, gte, lt, type SQL, sql } from 'drizzle-orm'
import { ACTOR_KINDS, auditLog, FREQUENT_ACTOR, isOfRareActor } from '#drizzle/schema/audit.ts'
import { AUDIT_ACTIONS } from '#drizzle/schema/audit-actions.ts'
import { organisations } from '#drizzle/schema/directory.ts'
import type { Actor } from '#lib/db/audit-log.ts'
import { firstAround, firstBeyond } from '#lib/db/audit-sequence.ts'
import type { Database } from '#lib/db/connection.ts'
import { isRequestId } from '#lib/http/request-id.ts'
import { BY_TIME, betweenDays, endOf, having, isOneOf, isRecordId, startOf } from './filters.ts'
import { listTable, type RowOf } from './list.ts'

export const AUDIT = listTable({
  filters: {
    organisation: isRecordId,
    action: isOneOf(AUDIT_ACTIONS),
    /** as `kind:sub` */
    actor: (text: string) => actorOf(text) !== undefined,
    /** the id of the entries' subject: of a record, or a hash */
    record: isSubject,
    /** the id of the request that caused the entries */
    request: isRequestId,
    ...BY_TIME,
  },
  table: auditLog,
  newest: { sequence: auditLog.sequence },
  conditionOf: async (db, { organisation, action, actor, record, request, ...days }) =>
    and(
      having(auditLog.action, action),
      having(auditLog.organisation, organisation),
      byActor(actor, action),
      having(auditLog.subjectId, record),
      having(auditLog.requestId, request),
      await writtenBetween(db, days),
    ),
  select: selectAudit,
})

/** Whether the audit log can be filtered by a text as the subject of its entries. */
export function isSubject(text: string): boolean {
  return /^[\x21-\x7e]{1,100}$/.test(text)
}

export type AuditLine = RowOf<typeof selectAudit>

export function selectAudit(db: Database, condition: SQL | undefined) {
  return db
    .select({
      sequence: auditLog.sequence,
      createdAt: auditLog.at,
      organisation: auditLog.organisation,
      organisationName: organisations.name,
      actorKind: auditLog.actorKind,
      actorSub: auditLog.actorSub,
      action: auditLog.action,
      subjectId: auditLog.subjectId,
      /** the request that caused it */
      requestId: auditLog.requestId,
      detail: auditLog.detail,
    })
    .from(auditLog)
    .leftJoin(organisations, eq(organisations.id, auditLog.organisation))
    .where(condition)
}

/** The condition for the entries by an actor, whose action may be a filter, too. */
function byActor(actor: string, action: string): SQL | undefined {
  const by = actorOf(actor)
  if (!by) return undefined
  const isBy = and(eq(auditLog.actorKind, by.kind), eq(auditLog.actorSub, by.sub))
  if (!isFrequent(by)) return and(isBy, isOfRareActor(auditLog))
  return action === 'transfer.sponsored' ? and(isBy, NONE) : isBy
}

/** The actor of a sponsored transfer is an account. Without this, a list would read millions of entries to find none. */
const NONE = sql`false`

/** Whether the index of actors leaves out an actor's entries. */
const isFrequent = ({ kind, sub }: Actor) => kind === 'service' && sub === FREQUENT_ACTOR

/** The actor that a filter names as `kind:sub`. */
export function actorOf(actor: string): Actor | undefined {
  const [, name = '', sub = ''] = /^([a-z]+):([^\0]{1,200})$/s.exec(actor) ?? []
  const kind = ACTOR_KINDS.find((one) => one === name)
  return kind && sub.isWellFormed() ? { kind, sub } : undefined
}

/**
 * The condition for the entries of the log from the start of the day `from` to the end of the day `to`. No index has
 * their time: a binary search on the key finds the numbers around each end, which every index of the log ends with.
 */
export async function writtenBetween(db: Database, days: { from: string; to: string }): Promise<SQL | undefined> {
  const [start, end] = [startOf(days.from), endOf(days.to)]
  const first = start && (await firstAround(db, start))
  const last = end && (await firstBeyond(db, end))
  return and(
    first === undefined ? undefined : gte(auditLog.sequence, first),
    last === undefined ? undefined : lt(auditLog.sequence, last),
    betweenDays(auditLog.at, days),
  )
}
