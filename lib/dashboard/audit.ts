import { and, count, desc, eq, gte, lt, lte, or, type SQL, sql } from 'drizzle-orm'
import {
  ACTOR_KINDS,
  type ActorKind,
  AUDIT_ACTIONS,
  type AuditAction,
  type AuditDetail,
  auditLog,
  type SubjectKind,
} from '#drizzle/schema/audit.ts'
import { organisations } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
import { readInParts } from '#lib/db/paging.ts'
import { contains } from '#lib/db/search.ts'
import { type List, type ListRequest, ofOrganisation, PART_SIZE, readPage } from './list.ts'

export interface AuditLine {
  sequence: number
  createdAt: Date
  organisation: string | null
  organisationName: string | null
  actorKind: ActorKind
  actorSub: string
  action: AuditAction
  subjectKind: SubjectKind
  subjectId: string
  detail: AuditDetail
}

export const AUDIT_ACTION_NAMES: readonly AuditAction[] = AUDIT_ACTIONS

export interface AuditFilters extends Pick<ListRequest, 'q' | 'organisation'> {
  action: string
  /** as `kind:sub` */
  actor: string
  /** from the start of this day (UTC) to the end of that day; anything else is ignored */
  from: string
  to: string
}

const COLUMNS = {
  sequence: auditLog.sequence,
  createdAt: auditLog.at,
  organisation: auditLog.organisation,
  organisationName: organisations.name,
  actorKind: auditLog.actorKind,
  actorSub: auditLog.actorSub,
  action: auditLog.action,
  subjectKind: auditLog.subjectKind,
  subjectId: auditLog.subjectId,
  detail: auditLog.detail,
}

/** Lists the audit log, newest first. */
export async function listAudit(db: Database, filters: AuditFilters, page: number): Promise<List<AuditLine>> {
  const condition = conditionOf(filters)
  const [counted] = await db.select({ count: count() }).from(auditLog).where(condition)
  return await readPage(new Map([['', counted?.count ?? 0]]), { status: '', page }, ({ limit, offset }) =>
    selectAudit(db, condition).limit(limit).offset(offset),
  )
}

/** Reads the entries that match the filters, newest first, in parts of at most `size`. */
export function readAudit(db: Database, filters: AuditFilters, size = PART_SIZE): AsyncGenerator<AuditLine[]> {
  const condition = conditionOf(filters)
  const read = async (last: AuditLine | undefined) =>
    await selectAudit(db, and(condition, last && lt(auditLog.sequence, last.sequence))).limit(size)
  return readInParts(read, size)
}

function selectAudit(db: Database, condition: SQL | undefined) {
  return db
    .select(COLUMNS)
    .from(auditLog)
    .leftJoin(organisations, eq(organisations.id, auditLog.organisation))
    .where(condition)
    .orderBy(desc(auditLog.sequence))
}

function conditionOf({ q, organisation, action, actor, from, to }: AuditFilters): SQL | undefined {
  const actionName = AUDIT_ACTIONS.find((name) => name === action)
  return and(
    actionName && eq(auditLog.action, actionName),
    ofOrganisation(auditLog.organisation, organisation),
    byActor(actor),
    byDay(from, '00:00:00.000', (start) => gte(auditLog.at, start)),
    byDay(to, '23:59:59.999', (end) => lte(auditLog.at, end)),
    containingText(q),
  )
}

/** Matches a part of an entry or of its organisation's name. */
function containingText(q: string): SQL | undefined {
  const own = contains(q, auditLog.actorSub, auditLog.subjectId, auditLog.action, auditLog.detail)
  const ofOrganisation = sql`${auditLog.organisation} in (select ${organisations.id} from ${organisations} where ${contains(q, organisations.name)})`
  return own && or(own, ofOrganisation)
}

function byActor(actor: string): SQL | undefined {
  if (actor === '') return undefined
  const [, kind = '', sub = ''] = /^([a-z]+):([^\0]*)$/s.exec(actor) ?? []
  const actorKind = ACTOR_KINDS.find((name) => name === kind)
  return actorKind ? and(eq(auditLog.actorKind, actorKind), eq(auditLog.actorSub, sub)) : sql`false`
}

/**
 * The condition for a day (YYYY-MM-DD) at a time in UTC; undefined if `day` is not a date that both PostgreSQL and
 * ISO 8601 write with four digits.
 */
function byDay(day: string, time: string, condition: (at: Date) => SQL): SQL | undefined {
  const at = /^(?!0000)\d{4}-\d{2}-\d{2}$/.test(day) ? new Date(`${day}T${time}Z`) : undefined
  return at === undefined || Number.isNaN(at.getTime()) ? undefined : condition(at)
}
