import { and, desc, eq, lt, type SQL, sql } from 'drizzle-orm'
import { auditLog } from '#drizzle/schema/audit.ts'
import type { Database } from '#lib/db/connection.ts'
import { cutPage, type Page, type PageRequest, rowsToRead } from '#lib/http/paging.ts'
import { REFUSAL_REASONS } from '#lib/sponsor/refusal-reason.ts'
import { soughtIn } from './search.ts'

/** A transfer that the sponsor did not pay for. */
export interface RefusalLine {
  sequence: number
  createdAt: Date
  account: string
  /** hash of the inner transaction, hex */
  innerHash: string
  /** the code of the reason, and its words */
  reason: string
  words: string
}

export interface RefusalFilters {
  /** the account that was to pay, or the hash of what it signed; empty for all, and anything else finds nothing */
  search: string
}

/** What the sponsor has refused, newest first, as the audit log has it. */
export async function listRefusals(
  db: Database,
  page: PageRequest,
  { search }: RefusalFilters = { search: '' },
): Promise<Page<RefusalLine>> {
  const rows = await db
    .select({
      sequence: auditLog.sequence,
      createdAt: auditLog.at,
      account: auditLog.actorSub,
      innerHash: auditLog.subjectId,
      detail: auditLog.detail,
    })
    .from(auditLog)
    .where(
      and(
        eq(auditLog.action, 'transfer.refused'),
        search === '' ? undefined : about(search),
        page.after && lt(auditLog.sequence, page.after.sequence),
      ),
    )
    .orderBy(desc(auditLog.sequence))
    .limit(rowsToRead(page))
  const { items, next } = cutPage(rows, page)
  return { items: items.map(({ detail, ...line }) => ({ ...line, ...wordsOf(detail.reason) })), next }
}

function about(search: string): SQL | undefined {
  const sought = soughtIn(search)
  if (!sought) return sql`false`
  return 'hash' in sought
    ? and(eq(auditLog.subjectKind, 'transfer'), eq(auditLog.subjectId, sought.hash))
    : eq(auditLog.actorSub, sought.account)
}

function wordsOf(reason: unknown): Pick<RefusalLine, 'reason' | 'words'> {
  const code = String(reason)
  const words: Record<string, string> = REFUSAL_REASONS
  return { reason: code, words: words[code] ?? code }
}
