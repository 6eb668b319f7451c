import type { Metadata } from 'next'
import { type AuditLine, auditActionOf, listAudit } from '#lib/operator/audit.ts'
import { readIfReachable } from '#lib/operator/reading.ts'
import { Moment } from '../figures.tsx'
import { Frame } from '../frame.tsx'
import { Hash } from '../hash.tsx'
import { addressOf, Pager, pageOf, readSearch } from '../listing.tsx'
import { requireOperator } from '../require-operator.ts'
import { type Column, Table, Unreachable } from '../table.tsx'
import { ActionForm } from './action-form.tsx'

export const metadata: Metadata = { title: 'Audit log' }

/** Who did what to which record, and when. */
export default async function AuditPage({ searchParams }: PageProps<'/audit'>) {
  const query = await readSearch(searchParams)
  const { database, settings, now } = await requireOperator(addressOf('/audit', query))
  const action = auditActionOf(query.action ?? '')
  const found = await readIfReachable(database, (db) => listAudit(db, { action }, pageOf(query)))
  return (
    <Frame here="/audit" title="Audit log" network={settings.network.name}>
      <ActionForm chosen={action} />
      {found ? (
        <>
          <Table
            caption="Entries of the audit log, newest first"
            columns={columnsAt(now())}
            rows={found.items}
            keyOf={({ sequence }) => String(sequence)}
            empty={
              <>
                <strong>No entries</strong>
                <p>Every change of a record is noted here, and can neither be changed nor removed.</p>
              </>
            }
          />
          <Pager path="/audit" query={query} next={found.next} />
        </>
      ) : (
        <Unreachable />
      )}
    </Frame>
  )
}

const columnsAt = (now: Date): Column<AuditLine>[] => [
  { head: 'When', cell: ({ createdAt }) => <Moment at={createdAt} now={now} /> },
  {
    head: 'Action',
    cell: (entry) => (
      <>
        <span className="font-medium">{entry.action}</span>
        <div className="text-xs [overflow-wrap:anywhere] text-faint">
          <span className="sm:hidden">{actor(entry)} </span>
          {Object.entries(entry.detail).map(([name, value]) => (
            <span key={name} className="mr-3">
              {name}: <Detail value={Array.isArray(value) ? value.join(', ') : String(value)} />
            </span>
          ))}
        </div>
      </>
    ),
  },
  { head: 'By', from: 'sm', cell: actor },
  {
    head: 'Record',
    from: 'md',
    isRepeated: true,
    cell: ({ subjectKind, subjectId }) => (
      <>
        <span className="text-soft">{subjectKind}</span>{' '}
        {subjectId.length > 20 ? <Hash value={subjectId} /> : subjectId}
      </>
    ),
  },
  {
    head: 'Organisation',
    from: 'lg',
    isRepeated: true,
    cell: ({ organisationName }) =>
      organisationName === null ? '–' : <span className="[overflow-wrap:anywhere]">{organisationName}</span>,
  },
]

/** An id or a hash by its ends, anything else as it is. */
function Detail({ value }: { value: string }) {
  return /^[0-9a-f-]{36,64}$/.test(value) ? <Hash value={value} /> : value
}

function actor({ actorKind, actorSub }: AuditLine) {
  if (actorKind === 'operator') return 'operator'
  if (actorSub.length > 20) return <Hash value={actorSub} />
  return <span className="whitespace-nowrap">{`${actorKind === 'service' ? 'service: ' : ''}${actorSub}`}</span>
}
