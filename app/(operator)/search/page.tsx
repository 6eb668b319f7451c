import type { Route } from 'next'
import { readIfReachable } from '#lib/dashboard/reading.ts'
import { type Hit, MAX_HITS, type SearchResult, searchRecords } from '#lib/dashboard/search.ts'
import { AUDIT_LIST } from '../audit/audit-list.tsx'
import { Moment, type View } from '../figures.tsx'
import { Frame } from '../frame.tsx'
import { addressOf, readQuery } from '../query.ts'
import { ACCENT, PageLink, RecordLink, recordPath } from '../record-links.tsx'
import { requireOperator } from '../require-operator.ts'
import { Section } from '../section.tsx'
import { type Column, Empty, Table, Unreachable } from '../table.tsx'

export const metadata = { title: 'Search' }

/** Finds records of every kind by a hash, an address, an id, a request id, or a part of a name or an email. */
export default async function SearchPage({ searchParams }: PageProps<'/search'>) {
  const query = await readQuery(searchParams)
  const { database, settings, now } = await requireOperator(addressOf('/search', query))
  const { q = '' } = query
  const result = await readIfReachable(database, (db) => searchRecords(db, q))
  const network = settings.network.name
  return (
    <Frame title="Search" network={network} q={q}>
      {result ? <Results q={q} result={result} view={{ now: now(), network }} /> : <Unreachable />}
    </Frame>
  )
}

function Results({ q, result, view }: { q: string; result: SearchResult; view: View }) {
  const { hits, entries, hasMore } = result
  const lists = listsFor(q)
  const count = hits.length + entries.length
  return (
    <>
      <p role="status" className="mb-4 text-[0.8125rem] text-soft">
        {q === '' ? 'Nothing to search for yet' : totalOf(count, hasMore)}
      </p>
      {lists.length > 0 && (
        <ul aria-label="Lists" className="mb-4 flex flex-wrap gap-x-4 gap-y-1">
          {lists.map(([name, address]) => (
            <li key={name}>
              <PageLink href={address} name={name} className={ACCENT} />
            </li>
          ))}
        </ul>
      )}
      {hits.length > 0 && (
        <Table caption="Records" view={view} columns={COLUMNS} rows={hits} keyOf={({ type, id }) => `${type} ${id}`} />
      )}
      {entries.length > 0 && (
        <Section id="entries" title="Audit log" className="mt-6">
          <Table
            caption="Entries of the audit log"
            view={view}
            columns={AUDIT_LIST.columns}
            rows={entries}
            keyOf={({ sequence }) => String(sequence)}
          />
        </Section>
      )}
      {count === 0 && (
        <Empty title={q === '' ? undefined : 'Nothing found'}>
          Enter a whole hash, address or id, the first eight digits of an id, a part of an email or of the name of a
          contractor, a batch or an organisation, or an <code>X-Request-Id</code>. Fewer than three letters find only
          what begins with them.
        </Empty>
      )}
    </>
  )
}

function totalOf(count: number, hasMore: boolean): string {
  if (hasMore) return `More than ${MAX_HITS} records match: these are ${count} of them`
  return `${count} ${count === 1 ? 'record' : 'records'} found`
}

/** The lists that have all records of an account or a request, and the page of a transaction. */
function listsFor(q: string): [name: string, address: Route][] {
  if (/^[GC][A-Z2-7]{55}$/i.test(q)) {
    const account = q.toUpperCase()
    return [
      ['Transfers of this account', addressOf('/transfers', { account })],
      ['Refused transfers of this account', addressOf('/transfers', { view: 'refused', account })],
      ['Audit entries by this account', addressOf('/audit', { actor: `ledger:${account}` })],
    ]
  }
  return /^[0-9a-f]{64}$/i.test(q) ? [['This transaction on the ledger', `/ledger/${q.toLowerCase()}` as Route]] : []
}

const wordOf = ({ type }: Hit) => type.charAt(0).toUpperCase() + type.slice(1)

function titleOf(hit: Hit): string {
  const { type, id, name } = hit
  if (name === null) return `${wordOf(hit)} ${id.slice(0, 8)}`
  return type === 'transfer' ? `Transfer of ${name.slice(0, 4)}…${name.slice(-4)}` : name
}

const HIT =
  'inline-block min-h-6 font-medium underline-offset-4 [overflow-wrap:anywhere] hover:text-accent hover:underline'

const COLUMNS: readonly Column<Hit>[] = [
  {
    head: 'Record',
    cell: (hit) => <PageLink href={recordPath(hit.type, hit.id)} name={titleOf(hit)} className={HIT} />,
  },
  { head: 'Found by', cell: (hit) => `${wordOf(hit)}, ${hit.by}` },
  {
    head: 'Organisation',
    from: 'sm',
    cell: ({ organisation }) => (organisation ? <RecordLink type="organisation" {...organisation} /> : '–'),
  },
  { head: 'Created', from: 'sm', cell: ({ at }, { now }) => <Moment at={at} now={now} /> },
]
