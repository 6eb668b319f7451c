import {
  type ActorKind,
  type AuditAction,
  type AuditDetail,
  auditLog,
  type SubjectKind,
} from '#drizzle/schema/audit.ts'
import type { Database } from './connection.ts'

/** Who acts: a user by (kind, sub), or the service itself, whose sub is the name of what it was doing. */
export interface Actor {
  kind: ActorKind
  sub: string
}

/** One entry of the audit log. `detail` holds ids, statuses, field names, reasons and counts, and nothing else. */
export interface AuditEntry {
  /** undefined where the actor has none: a refused transfer of somebody without records */
  organisation: string | undefined
  actor: Actor
  action: AuditAction
  subject: { kind: SubjectKind; id: string }
  detail?: AuditDetail
}

/** Rows of one statement: so few that making it keeps nobody waiting. */
const ROWS_AT_ONCE = 250

/** Appends to the audit log. `tx` is the transaction of the change itself: both are written, or neither. */
export async function recordAudit(tx: Database, at: Date, ...entries: AuditEntry[]): Promise<void> {
  for (let start = 0; start < entries.length; start += ROWS_AT_ONCE) {
    await tx.insert(auditLog).values(entries.slice(start, start + ROWS_AT_ONCE).map((entry) => rowOf(entry, at)))
  }
}

function rowOf({ organisation, actor, action, subject, detail }: AuditEntry, at: Date) {
  return {
    at,
    organisation: organisation ?? null,
    actorKind: actor.kind,
    actorSub: actor.sub,
    action,
    subjectKind: subject.kind,
    subjectId: subject.id,
    detail: detail ?? {},
  }
}
