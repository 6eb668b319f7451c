import { and, eq, type SQL, sql } from 'drizzle-orm'
import { auditLog } from '#drizzle/schema/audit.ts'
import { organisations } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
import { countUpTo } from '#lib/db/count.ts'
import type { Order } from '#lib/db/keyset.ts'
import { SPONSOR_REASONS } from '#lib/refusal/refusal.ts'
import { writtenBetween } from './audit-days.ts'
import { explainRefusal } from './explanation.ts'
import { BY_TIME, type Filters, having, isAccount, isOneOf, isRecordId, readFilters } from './filters.ts'
import { type PageRequest, readAll, readPage, type Source } from './list.ts'
import { TRANSFER_FILTERS } from './transfer-filters.ts'

export interface RefusalLine {
  sequence: number
  createdAt: Date
  account: string
  /** hash of the inner transaction, hex */
  innerHash: string
  organisation: string | null
  organisationName: string | null
  /** the code of the reason, and its description */
  reason: string
  words: string
}

export const REFUSAL_FILTERS = {
  organisation: isRecordId,
  contractor: isRecordId,
  account: isAccount,
  reason: isOneOf(Object.keys(SPONSOR_REASONS)),
  ...BY_TIME,
}

export type RefusalFilters = Filters<typeof REFUSAL_FILTERS>

/**
 * Reads the filters of the refusals from a query for transfers. Undefined if no refusal can match it: the log doesn't name
 * the batch of a refused transfer, and a transfer that was sent fails for other reasons.
 */
export function refusalFiltersOf(query: Readonly<Record<string, string>>): RefusalFilters | undefined {
  const { batch, reason } = readFilters(TRANSFER_FILTERS, query).filters
  const { filters } = readFilters(REFUSAL_FILTERS, query)
  return batch === '' && reason === filters.reason ? filters : undefined
}

/** Lists the sponsor's refusals from the audit log. */
export async function listRefusals(db: Database, filters: RefusalFilters, page: PageRequest) {
  return await readPage(await sourceOf(db, filters), page)
}

/** Reads the refusals that match the filters, newest first, in chunks of at most `size`. */
export async function* readRefusals(db: Database, filters: RefusalFilters, size?: number) {
  yield* readAll(await sourceOf(db, { ...filters, sort: '' }), size)
}

const NEWEST: Order = { sequence: auditLog.sequence }

async function sourceOf(db: Database, filters: RefusalFilters): Promise<Source<RefusalLine>> {
  const condition = await refusalsOf(db, filters)
  return {
    order: { ...NEWEST, ascending: filters.sort === 'oldest' },
    read: async ({ beside, order, limit }) => {
      const rows = await selectRefusals(db, and(condition, beside))
        .orderBy(...order)
        .limit(limit)
      return rows.map(presentRefusal)
    },
    placeOf: ({ sequence }) => [0, sequence],
  }
}

function selectRefusals(db: Database, condition: SQL | undefined) {
  return db
    .select({
      sequence: auditLog.sequence,
      createdAt: auditLog.at,
      account: auditLog.actorSub,
      innerHash: auditLog.subjectId,
      organisation: auditLog.organisation,
      organisationName: organisations.name,
      detail: auditLog.detail,
    })
    .from(auditLog)
    .leftJoin(organisations, eq(organisations.id, auditLog.organisation))
    .where(condition)
}

const presentRefusal = ({ detail, ...line }: Awaited<ReturnType<typeof selectRefusals>>[number]): RefusalLine => ({
  ...line,
  reason: String(detail.reason),
  words: explainRefusal(String(detail.reason)),
})

/** Counts the refusals that match, up to one more than MAX_COUNTED. */
export async function countRefusals(db: Database, filters: RefusalFilters): Promise<number> {
  const counts = await countUpTo(db, auditLog, NEWEST, { refused: await refusalsOf(db, filters) })
  return counts.get('refused') ?? 0
}

async function refusalsOf(db: Database, filters: RefusalFilters): Promise<SQL | undefined> {
  const { organisation, contractor, account, reason } = filters
  return and(
    eq(auditLog.action, 'transfer.refused'),
    having(auditLog.organisation, organisation),
    having(auditLog.actorSub, account),
    contractor === '' ? undefined : sql`(${auditLog.detail} ->> 'contractor') = ${contractor}`,
    reason === '' ? undefined : sql`(${auditLog.detail} ->> 'reason') = ${reason}`,
    await writtenBetween(db, filters),
  )
}
