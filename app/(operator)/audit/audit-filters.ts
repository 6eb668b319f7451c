import type { AuditFilters } from '#lib/dashboard/audit.ts'
import type { Query } from '../query.ts'

export function auditFilters(query: Query): AuditFilters {
  const { q = '', organisation = '', action = '', actor = '', from = '', to = '' } = query
  return { q: q.trim(), organisation, action, actor, from, to }
}
