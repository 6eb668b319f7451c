import { AUDIT, type AuditLine } from '#lib/dashboard/audit.ts'
import { ACTIONS_IN_WORDS, type DescribedEntry, describeEntries } from '#lib/dashboard/audit-words.ts'
import { subjectKindOf } from '#lib/db/audit-log.ts'
import { AuditEntry } from '../audit-entry.tsx'
import { fileColumn, organisationColumn } from '../columns.tsx'
import { Moment } from '../figures.tsx'
import { FIELD } from '../filter-form.tsx'
import type { ListDisplay } from '../list-display.ts'

/** The audit log: each entry with its actor, action, record and time. */
export const AUDIT_LIST: ListDisplay<typeof AUDIT.filters, AuditLine, DescribedEntry> = {
  records: AUDIT,
  file: 'audit',
  here: '/audit',
  title: 'Audit log',
  nouns: ['entry', 'entries'],
  describe: describeEntries,
  fields: ({ action }) => (
    <select
      name="action"
      aria-label="Action"
      key={`action ${action}`}
      defaultValue={action}
      className={`${FIELD} max-sm:w-full sm:max-w-80`}
    >
      <option value="">All actions</option>
      {ACTIONS_IN_WORDS.map(([name, words]) => (
        <option key={name} value={name}>
          {words}
        </option>
      ))}
    </select>
  ),
  columns: [
    fileColumn('Number', ({ sequence }) => sequence),
    // On the page it is the last column.
    fileColumn('When (UTC)', ({ createdAt }) => createdAt),
    { head: 'What happened', cell: (entry) => <AuditEntry entry={entry} /> },
    fileColumn('Action', ({ action }) => action),
    fileColumn('Actor kind', ({ actorKind }) => actorKind),
    fileColumn('By', ({ actorSub }) => actorSub),
    fileColumn('Record kind', ({ action }) => subjectKindOf(action)),
    fileColumn('Record', ({ subjectId }) => subjectId),
    organisationColumn({ from: 'lg', isOmitted: true, isName: true }),
    fileColumn('Organisation id', ({ organisation }) => organisation),
    fileColumn('Request', ({ requestId }) => requestId),
    fileColumn('Detail', ({ detail }) => JSON.stringify(detail)),
    { head: 'When', from: 'sm', cell: ({ createdAt }, { now }) => <Moment at={createdAt} now={now} /> },
  ],
  empty: () => ({
    title: 'No entries',
    children: 'Every change to a record is logged here. Entries cannot be changed or removed.',
  }),
}
