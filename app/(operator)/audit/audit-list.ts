import { AUDIT_FILTERS, type AuditLine, readAudit } from '#lib/dashboard/audit.ts'
import { subjectKindOf } from '#lib/db/audit-log.ts'
import type { ListFile } from '../csv-file.ts'

export const AUDIT_LIST: ListFile<typeof AUDIT_FILTERS, AuditLine> = {
  name: 'audit',
  checks: AUDIT_FILTERS,
  read: (db, filters) => readAudit(db, filters),
  columns: [
    ['Number', ({ sequence }) => sequence],
    ['When (UTC)', ({ createdAt }) => createdAt],
    ['Action', ({ action }) => action],
    ['Actor kind', ({ actorKind }) => actorKind],
    ['By', ({ actorSub }) => actorSub],
    ['Record kind', ({ action }) => subjectKindOf(action)],
    ['Record', ({ subjectId }) => subjectId],
    ['Organisation', ({ organisationName }) => organisationName],
    ['Organisation id', ({ organisation }) => organisation],
    ['Request', ({ requestId }) => requestId],
    ['Detail', ({ detail }) => JSON.stringify(detail)],
  ],
}
