import { and, count, desc, eq, lt, type SQL, sql } from 'drizzle-orm'
import { auditLog } from '#drizzle/schema/audit.ts'
import { organisations } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
import { readInParts } from '#lib/db/paging.ts'
import { contains } from '#lib/db/search.ts'
import { isId } from '#lib/directory/ids.ts'
import { REFUSALS } from '#lib/refusal/refusal.ts'
import { type Filters, type List, type ListRequest, ofOrganisation, PART_SIZE, readPage } from './list.ts'
import { exactSearch } from './search.ts'

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

export interface RefusalRequest extends Pick<ListRequest, 'q' | 'organisation' | 'page'> {
  /** the id of the contractor that the refused transfer was to pay */
  contractor: string
}

/** Lists the sponsor's refusals from the audit log, newest first. */
export async function listRefusals(db: Database, request: RefusalRequest): Promise<List<RefusalLine>> {
  const counts = new Map([['', await countRefusals(db, request)]])
  return await readPage(counts, { status: '', page: request.page }, async ({ limit, offset }) => {
    const rows = await selectRefusals(db, refusalsOf(request)).limit(limit).offset(offset)
    return rows.map(presentRefusal)
  })
}

/** Reads the refusals that match the filters, newest first, in parts of at most `size`. */
export function readRefusals(db: Database, filters: Filters<RefusalRequest>, size = PART_SIZE) {
  const condition = refusalsOf(filters)
  const read = async (last: RefusalLine | undefined) => {
    const rows = await selectRefusals(db, and(condition, last && lt(auditLog.sequence, last.sequence))).limit(size)
    return rows.map(presentRefusal)
  }
  return readInParts(read, size)
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
    .orderBy(desc(auditLog.sequence))
}

const presentRefusal = ({ detail, ...line }: Awaited<ReturnType<typeof selectRefusals>>[number]): RefusalLine => ({
  ...line,
  ...wordsOf(detail.reason),
})

export async function countRefusals(db: Database, request: Filters<RefusalRequest>): Promise<number> {
  const [counted] = await db.select({ count: count() }).from(auditLog).where(refusalsOf(request))
  return counted?.count ?? 0
}

function refusalsOf({ q, organisation, contractor }: Filters<RefusalRequest>): SQL | undefined {
  const exact = exactSearch(q)
  return and(
    eq(auditLog.action, 'transfer.refused'),
    ofOrganisation(auditLog.organisation, organisation),
    contractor === '' ? undefined : sql`${auditLog.detail} ->> 'contractor' = ${isId(contractor) ? contractor : ''}`,
    exact
      ? matchExactly(exact)
      : contains(q, auditLog.actorSub, auditLog.subjectId, sql`${auditLog.detail} ->> 'reason'`),
  )
}

function matchExactly(exact: NonNullable<ReturnType<typeof exactSearch>>): SQL | undefined {
  return 'hash' in exact
    ? and(eq(auditLog.subjectKind, 'transfer'), eq(auditLog.subjectId, exact.hash))
    : eq(auditLog.actorSub, exact.account)
}

function wordsOf(reason: unknown): Pick<RefusalLine, 'reason' | 'words'> {
  const code = String(reason)
  const words: Record<string, string> = REFUSALS[422]
  return { reason: code, words: words[code] ?? code }
}
