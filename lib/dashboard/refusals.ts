import { and, count, desc, eq, type SQL, sql } from 'drizzle-orm'
import { auditLog } from '#drizzle/schema/audit.ts'
import { organisations } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
import { contains } from '#lib/db/search.ts'
import { REFUSALS } from '#lib/refusal/refusal.ts'
import { type List, type ListRequest, ofOrganisation, readPage } from './list.ts'
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

type RefusalRequest = Pick<ListRequest, 'q' | 'organisation' | 'page'>

/** Lists the sponsor's refusals from the audit log, newest first. */
export async function listRefusals(db: Database, request: RefusalRequest): Promise<List<RefusalLine>> {
  const condition = refusalsOf(request)
  const counts = new Map([['', await countRefusals(db, request)]])
  return await readPage(counts, { status: '', page: request.page }, async ({ limit, offset }) => {
    const rows = await db
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
      .limit(limit)
      .offset(offset)
    return rows.map(({ detail, ...line }) => ({ ...line, ...wordsOf(detail.reason) }))
  })
}

export async function countRefusals(db: Database, request: Omit<RefusalRequest, 'page'>): Promise<number> {
  const [counted] = await db.select({ count: count() }).from(auditLog).where(refusalsOf(request))
  return counted?.count ?? 0
}

function refusalsOf({ q, organisation }: Omit<RefusalRequest, 'page'>): SQL | undefined {
  const exact = exactSearch(q)
  return and(
    eq(auditLog.action, 'transfer.refused'),
    ofOrganisation(auditLog.organisation, organisation),
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
