import { type AuditFilters, type AuditLine, readAudit } from '#lib/dashboard/audit.ts'
import type { ListFile } from '../csv-file.ts'

export const AUDIT_LIST: ListFile<AuditFilters, AuditLine> = {
  name: 'audit',
  filters: ({ q = '', organisation = '', action = '', actor = '', from = '', to = '' }) => ({
    q,
    organisation,
    action,
    actor,
    from,
    to,
  }),
  read: (db, filters) => readAudit(db, filters),
  columns: [
    ['Number', ({ sequence }) => sequence],
    ['When (UTC)', ({ createdAt }) => createdAt],
    ['Action', ({ action }) => action],
    ['Actor kind', ({ actorKind }) => actorKind],
    ['By', ({ actorSub }) => actorSub],
    ['Record kind', ({ subjectKind }) => subjectKind],
    ['Record', ({ subjectId }) => subjectId],
    ['Organisation', ({ organisationName }) => organisationName],
    ['Organisation id', ({ organisation }) => organisation],
    ['Detail', ({ detail }) => JSON.stringify(detail)],
  ],
}
