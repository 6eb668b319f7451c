import type { Metadata } from 'next'
import Link from 'next/link'
import { AUDIT_ACTION_NAMES, type AuditLine, listAudit } from '#lib/dashboard/audit.ts'
import { findOrganisationName } from '#lib/dashboard/list.ts'
import { readIfReachable } from '#lib/dashboard/reading.ts'
import { Details } from '../details.tsx'
import { Moment } from '../figures.tsx'
import { Address } from '../hash.tsx'
import { ListView } from '../list-view.tsx'
import { addressOf, pageNumber, readQuery } from '../query.ts'
import { OrganisationLink, recordPath } from '../record-links.tsx'
import { requireOperator } from '../require-operator.ts'
import { FIELD, organisationFilter } from '../search-form.tsx'
import type { Column } from '../table.tsx'
import { AUDIT_LIST } from './audit-list.ts'

export const metadata: Metadata = { title: 'Audit log' }

/** The audit log: each entry with its actor, action, record and time. */
export default async function AuditPage({ searchParams }: PageProps<'/audit'>) {
  const query = await readQuery(searchParams)
  const service = await requireOperator(addressOf('/audit', query))
  const { database, settings, now } = service
  const filters = AUDIT_LIST.filters(query, service)
  const network = settings.network.name
  const data = await readIfReachable(database, async (db) => ({
    list: await listAudit(db, filters, pageNumber(query)),
    organisation: await findOrganisationName(db, filters.organisation),
  }))
  return (
    <ListView
      here="/audit"
      title="Audit log"
      network={network}
      path="/audit"
      query={query}
      list={data?.list}
      nouns={['entry', 'entries']}
      searches="organisation, actor, record or detail"
      filters={[
        ...organisationFilter(query, data?.organisation),
        ...(filters.actor ? [{ name: 'actor', label: 'By', value: filters.actor }] : []),
      ]}
      fields={<Fields {...filters} />}
      csv={[{ list: AUDIT_LIST, of: 'These entries' }]}
      columns={columnsFor(network, now())}
      keyOf={({ sequence }) => String(sequence)}
      empty={
        <>
          <strong>No entries</strong>
          <p>Every change to a record is logged here. Entries cannot be changed or removed.</p>
        </>
      }
    />
  )
}

function Fields({ action, from, to }: { action: string; from: string; to: string }) {
  return (
    <>
      <select
        name="action"
        aria-label="Action"
        key={`action ${action}`}
        defaultValue={action}
        className={`${FIELD} max-sm:w-full`}
      >
        <option value="">All actions</option>
        {AUDIT_ACTION_NAMES.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
      <Day name="from" label="From day (UTC)" value={from} />
      <span className="text-faint">to</span>
      <Day name="to" label="To day (UTC)" value={to} />
    </>
  )
}

function Day({ name, label, value }: { name: string; label: string; value: string }) {
  const className = `${FIELD} max-sm:grow`
  return <input type="date" name={name} aria-label={label} key={value} defaultValue={value} className={className} />
}

const columnsFor = (network: string, now: Date): Column<AuditLine>[] => [
  {
    head: 'When',
    cell: ({ action, createdAt }) => (
      <>
        <div className="font-medium sm:hidden">{action}</div>
        <div className="max-sm:text-xs max-sm:text-soft">
          <Moment at={createdAt} now={now} />
        </div>
      </>
    ),
    beneath: (entry) => (
      <div className="sm:hidden">
        <Details detail={entry.detail} network={network} />
      </div>
    ),
  },
  {
    head: 'Action',
    from: 'sm',
    cell: (entry) => (
      <>
        <span className="font-medium">{entry.action}</span>
        <Details detail={entry.detail} network={network} />
      </>
    ),
  },
  {
    head: 'Organisation',
    from: 'xl',
    isRepeated: true,
    cell: ({ organisation, organisationName }) =>
      organisation === null || organisationName === null ? (
        '–'
      ) : (
        <OrganisationLink id={organisation} name={organisationName} />
      ),
  },
  { head: 'By', from: 'sm', isRepeated: true, cell: (entry) => <Actor entry={entry} network={network} /> },
  {
    head: 'Record',
    from: 'md',
    isRepeated: true,
    cell: (entry) => <Subject entry={entry} network={network} />,
  },
]

/** The kinds of subjects that have a page. */
const SUBJECT_TYPES = ['organisation', 'contractor', 'batch', 'payout', 'transfer'] as const

/**
 * The subject of an entry. A sign-in shows its browser; one from a new browser shows a digest of the client's address.
 */
function Subject({ entry: { subjectKind, subjectId }, network }: { entry: AuditLine; network: string }) {
  const [, newcomer] = /^a new browser of (\w+)$/.exec(subjectId) ?? []
  const type = SUBJECT_TYPES.find((one) => one === subjectKind)
  if (type && /^[0-9a-f-]{36}$/.test(subjectId)) {
    return (
      <Link
        href={recordPath(type, subjectId)}
        prefetch={false}
        className="inline-block min-h-6 underline underline-offset-4 hover:text-accent"
      >
        {subjectKind} {subjectId.slice(0, 8)}
      </Link>
    )
  }
  const isLong = /^\S{21,}$/.test(subjectId)
  // The details contain the transfer's id: several transactions may have been signed for it.
  const isHash = subjectKind === 'transfer' && subjectId.length === 64
  return (
    <span className="xl:whitespace-nowrap">
      <span className="text-soft">{isHash ? 'inner hash' : subjectKind}</span> {newcomer && 'from '}
      {newcomer || isLong ? <Address value={newcomer ?? subjectId} network={network} /> : subjectId}
    </span>
  )
}

function Actor({ entry: { actorKind, actorSub }, network }: { entry: AuditLine; network: string }) {
  const isLong = actorSub.length > 20
  return (
    <span className="xl:whitespace-nowrap">
      {isLong ? <Address value={actorSub} network={network} /> : <span className="whitespace-nowrap">{actorSub}</span>}{' '}
      <Link
        href={addressOf('/audit', { actor: `${actorKind}:${actorSub}` })}
        prefetch={false}
        title={`All entries by ${actorSub}`}
        className="inline-block min-h-6 text-xs leading-6 text-soft underline underline-offset-4 hover:text-accent"
      >
        {actorKind === 'ledger' ? 'wallet' : actorKind === 'idp' ? 'email' : actorKind}
      </Link>
    </span>
  )
}
