import { type ActorKind, type AuditDetail, auditLog } from '#drizzle/schema/audit.ts'
import type { AuditAction, SubjectKind } from '#drizzle/schema/audit-actions.ts'
import { currentRequestId } from '#lib/observability/log.ts'
import type { Database } from './connection.ts'
import { partsOf } from './parts.ts'

/** The actor of an entry: a user by (kind, sub), or the service itself, where `sub` is the name of its chore. */
export interface Actor {
  kind: ActorKind
  sub: string
}

/** The relays, as the actor of what no operator has asked for. */
export const RELAY: Actor = { kind: 'service', sub: 'relay' }

/** One entry of the audit log. `detail` contains only ids, statuses, field names, reasons and counts. */
export interface AuditEntry {
  /** undefined if the actor has none, as for a refused transfer of an account without records */
  organisation: string | undefined
  actor: Actor
  action: AuditAction
  /** the id of the record; the action implies its type */
  subject: string
  detail?: AuditDetail
}

/**
 * Appends to the audit log, with the id of the request in progress. `tx` is the transaction of the change itself: both are
 * written, or neither.
 */
export async function recordAudit(tx: Database, at: Date, ...entries: AuditEntry[]): Promise<void> {
  const rows = entries.map((entry) => rowOf(entry, at))
  for (const part of partsOf(rows)) await tx.insert(auditLog).values(part)
}

function rowOf({ organisation, actor, action, subject, detail }: AuditEntry, at: Date) {
  return {
    at,
    organisation: organisation ?? null,
    actorKind: actor.kind,
    actorSub: actor.sub,
    action,
    subjectId: subject,
    requestId: currentRequestId() ?? null,
    detail: detail ?? {},
  }
}

/** The kind of an action's subject: the word before the dot. Only sign-ins of an operator are recorded. */
export function subjectKindOf(action: AuditAction): SubjectKind {
  const kind = action.slice(0, action.indexOf('.')) as Exclude<SubjectKind, 'sign-in'> | 'operator'
  return kind === 'operator' ? 'sign-in' : kind
}
