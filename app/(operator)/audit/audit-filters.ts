import type { AuditFilters } from '#lib/operator/audit.ts'
import type { Query } from '../query.ts'

/** What a query asks of the audit log. */
export function auditFilters(query: Query): AuditFilters {
  const { q = '', organisation = '', action = '', actor = '', from = '', to = '' } = query
  return { q, organisation, action, actor, from, to }
}
