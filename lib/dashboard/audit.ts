import { and, eq, type SQL, sql } from 'drizzle-orm'
import {
  ACTOR_KINDS,
  type ActorKind,
  type AuditDetail,
  auditLog,
  FREQUENT_ACTOR,
  isOfRareActor,
} from '#drizzle/schema/audit.ts'
import { AUDIT_ACTIONS, type AuditAction } from '#drizzle/schema/audit-actions.ts'
import { organisations } from '#drizzle/schema/directory.ts'
import type { Actor } from '#lib/db/audit-log.ts'
import type { Database } from '#lib/db/connection.ts'
import { countUpTo } from '#lib/db/count.ts'
import type { Order } from '#lib/db/keyset.ts'
import { isRequestId } from '#lib/http/request-id.ts'
import { writtenBetween } from './audit-days.ts'
import { BY_TIME, type Filters, having, isOneOf, isRecordId } from './filters.ts'
import { type List, type PageRequest, readAll, readPage, type Source, totals } from './list.ts'

export interface AuditLine {
  sequence: number
  createdAt: Date
  organisation: string | null
  organisationName: string | null
  actorKind: ActorKind
  actorSub: string
  action: AuditAction
  subjectId: string
  /** the request that caused it */
  requestId: string | null
  detail: AuditDetail
}

export const AUDIT_FILTERS = {
  organisation: isRecordId,
  action: isOneOf(AUDIT_ACTIONS),
  /** as `kind:sub` */
  actor: (text: string) => actorOf(text) !== undefined,
  /** the id of the entries' subject: of a record, or a hash */
  record: (text: string) => /^[\x21-\x7e]{1,100}$/.test(text),
  /** the id of the request that caused the entries */
  request: isRequestId,
  ...BY_TIME,
}

export type AuditFilters = Filters<typeof AUDIT_FILTERS>

const COLUMNS = {
  sequence: auditLog.sequence,
  createdAt: auditLog.at,
  organisation: auditLog.organisation,
  organisationName: organisations.name,
  actorKind: auditLog.actorKind,
  actorSub: auditLog.actorSub,
  action: auditLog.action,
  subjectId: auditLog.subjectId,
  requestId: auditLog.requestId,
  detail: auditLog.detail,
}

/** Lists the audit log. */
export async function listAudit(db: Database, filters: AuditFilters, page: PageRequest): Promise<List<AuditLine>> {
  const condition = await conditionOf(db, filters)
  const counts = await countUpTo(db, auditLog, NEWEST, { all: condition })
  const part = await readPage(sourceOf(db, condition, filters.sort), page)
  return { ...part, ...totals(counts, 'all') }
}

/** Reads the entries that match the filters, newest first, in chunks of at most `size`. */
export async function* readAudit(db: Database, filters: AuditFilters, size?: number): AsyncGenerator<AuditLine[]> {
  yield* readAll(sourceOf(db, await conditionOf(db, filters)), size)
}

const NEWEST: Order = { sequence: auditLog.sequence }

function sourceOf(db: Database, condition: SQL | undefined, sort = ''): Source<AuditLine> {
  return {
    order: { ...NEWEST, ascending: sort === 'oldest' },
    read: async ({ beside, order, limit }) =>
      await selectAudit(db, and(condition, beside))
        .orderBy(...order)
        .limit(limit),
    placeOf: ({ sequence }) => [0, sequence],
  }
}

export function selectAudit(db: Database, condition: SQL | undefined) {
  return db
    .select(COLUMNS)
    .from(auditLog)
    .leftJoin(organisations, eq(organisations.id, auditLog.organisation))
    .where(condition)
}

async function conditionOf(db: Database, filters: AuditFilters): Promise<SQL | undefined> {
  const { organisation, action, actor, record, request } = filters
  const by = actorOf(actor)
  return and(
    having(auditLog.action, action),
    having(auditLog.organisation, organisation),
    by &&
      and(
        eq(auditLog.actorKind, by.kind),
        eq(auditLog.actorSub, by.sub),
        !isFrequent(by) ? isOfRareActor(auditLog) : action === 'transfer.sponsored' ? NONE : undefined,
      ),
    having(auditLog.subjectId, record),
    having(auditLog.requestId, request),
    await writtenBetween(db, filters),
  )
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
