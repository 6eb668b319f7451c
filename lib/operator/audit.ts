import { and, desc, eq, lt } from 'drizzle-orm'
import {
  type ActorKind,
  AUDIT_ACTIONS,
  type AuditAction,
  type AuditDetail,
  auditLog,
  type SubjectKind,
} from '#drizzle/schema/audit.ts'
import { organisations } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
import { cutPage, type Page, type PageRequest, rowsToRead } from '#lib/http/paging.ts'

/** An entry of the audit log. */
export interface AuditLine {
  sequence: number
  createdAt: Date
  organisationName: string | null
  actorKind: ActorKind
  actorSub: string
  action: AuditAction
  subjectKind: SubjectKind
  subjectId: string
  detail: AuditDetail
}

/** What entries can be about. */
export const AUDIT_ACTION_NAMES: readonly AuditAction[] = AUDIT_ACTIONS

/** The action that `text` names. */
export function auditActionOf(text: string): AuditAction | undefined {
  return AUDIT_ACTIONS.find((action) => action === text)
}

/** Who did what to which record, newest first. */
export async function listAudit(
  db: Database,
  { action }: { action: AuditAction | undefined },
  page: PageRequest,
): Promise<Page<AuditLine>> {
  const rows = await db
    .select({
      sequence: auditLog.sequence,
      createdAt: auditLog.at,
      organisationName: organisations.name,
      actorKind: auditLog.actorKind,
      actorSub: auditLog.actorSub,
      action: auditLog.action,
      subjectKind: auditLog.subjectKind,
      subjectId: auditLog.subjectId,
      detail: auditLog.detail,
    })
    .from(auditLog)
    .leftJoin(organisations, eq(organisations.id, auditLog.organisation))
    .where(and(action && eq(auditLog.action, action), page.after && lt(auditLog.sequence, page.after.sequence)))
    .orderBy(desc(auditLog.sequence))
    .limit(rowsToRead(page))
  return cutPage(rows, page)
}
