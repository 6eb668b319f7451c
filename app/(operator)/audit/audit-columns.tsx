import type { DescribedEntry } from '#lib/dashboard/audit-words.ts'
import { AuditEntry } from '../audit-entry.tsx'
import { Moment } from '../figures.tsx'
import { OrganisationLink } from '../record-links.tsx'
import type { Column } from '../table.tsx'

/** How entries of the audit log are listed. */
export const auditColumns = (now: Date): Column<DescribedEntry>[] => [
  { head: 'What happened', cell: (entry) => <AuditEntry entry={entry} /> },
  {
    head: 'Organisation',
    isName: true,
    from: 'lg',
    cell: ({ organisation, organisationName }) =>
      organisation === null || organisationName === null ? (
        '–'
      ) : (
        <OrganisationLink id={organisation} name={organisationName} />
      ),
  },
  { head: 'When', from: 'sm', isRepeated: true, cell: ({ createdAt }) => <Moment at={createdAt} now={now} /> },
]
