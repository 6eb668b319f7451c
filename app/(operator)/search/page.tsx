import type { Metadata, Route } from 'next'
import Link from 'next/link'
import { readIfReachable } from '#lib/dashboard/reading.ts'
import { type Hit, MAX_HITS, type SearchResult, searchRecords } from '#lib/dashboard/search.ts'
import { AUDIT_LIST } from '../audit/audit-list.tsx'
import { Moment } from '../figures.tsx'
import { Frame } from '../frame.tsx'
import { addressOf, readQuery } from '../query.ts'
import { OrganisationLink, recordPath } from '../record-links.tsx'
import { requireOperator } from '../require-operator.ts'
import { type Column, Empty, Table, Unreachable } from '../table.tsx'

export const metadata: Metadata = { title: 'Search' }

/** Finds records of every kind by a hash, an address, an id, a request id, or a part of a name or an email. */
export default async function SearchPage({ searchParams }: PageProps<'/search'>) {
  const query = await readQuery(searchParams)
  const { database, settings, now } = await requireOperator(addressOf('/search', query))
  const { q = '' } = query
  const result = await readIfReachable(database, (db) => searchRecords(db, q))
  const network = settings.network.name
  return (
    <Frame title="Search" network={network} q={q}>
      {result ? <Results q={q} result={result} now={now()} network={network} /> : <Unreachable />}
    </Frame>
  )
}

function Results({ q, result, now, network }: { q: string; result: SearchResult; now: Date; network: string }) {
  const { hits, entries, hasMore } = result
  const lists = listsFor(q)
  const count = hits.length + entries.length
  return (
    <>
      <p role="status" className="mb-4 text-[0.8125rem] text-soft">
        {q === '' ? 'Nothing to search for yet' : foundWords(count, hasMore)}
      </p>
      {lists.length > 0 && (
        <ul aria-label="Lists" className="mb-4 flex flex-wrap gap-x-4 gap-y-1">
          {lists.map(([name, address]) => (
            <li key={name}>
              <Link href={address} prefetch={false} className={LINK}>
                {name}
              </Link>
            </li>
          ))}
        </ul>
      )}
      {hits.length > 0 && (
        <Table
          caption="Records"
          view={{ now, network }}
          columns={columnsAt(now)}
          rows={hits}
          keyOf={({ type, id }) => `${type} ${id}`}
        />
      )}
      {entries.length > 0 && (
        <section aria-labelledby="entries" className="mt-6">
          <h2 id="entries" className="mb-2 font-semibold">
            Audit log
          </h2>
          <Table
            caption="Entries of the audit log"
            view={{ now, network }}
            columns={AUDIT_LIST.columns}
            rows={entries}
            keyOf={({ sequence }) => String(sequence)}
          />
        </section>
      )}
      {count === 0 && <NothingFound isAsked={q !== ''} />}
    </>
  )
}

const LINK = 'inline-block min-h-6 leading-6 text-accent underline-offset-4 hover:underline'

function foundWords(count: number, hasMore: boolean): string {
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

const TYPE_WORDS: Record<Hit['type'], string> = {
  transfer: 'Transfer',
  payout: 'Payout',
  batch: 'Batch',
  job: 'Job',
  contractor: 'Contractor',
  organisation: 'Organisation',
}

function titleOf({ type, id, name }: Hit): string {
  if (name === null) return `${TYPE_WORDS[type]} ${id.slice(0, 8)}`
  return type === 'transfer' ? `Transfer of ${name.slice(0, 4)}…${name.slice(-4)}` : name
}

const columnsAt = (now: Date): Column<Hit>[] => [
  {
    head: 'Record',
    cell: (hit) => (
      <Link
        href={recordPath(hit.type, hit.id)}
        prefetch={false}
        className="inline-block min-h-6 font-medium underline-offset-4 [overflow-wrap:anywhere] hover:text-accent hover:underline"
      >
        {titleOf(hit)}
      </Link>
    ),
  },
  { head: 'Found by', cell: ({ type, by }) => `${TYPE_WORDS[type]}, ${by}` },
  {
    head: 'Organisation',
    from: 'sm',
    isRepeated: true,
    cell: ({ organisation }) => (organisation ? <OrganisationLink {...organisation} /> : '–'),
  },
  { head: 'Created', from: 'sm', isRepeated: true, cell: ({ at }) => <Moment at={at} now={now} /> },
]

function NothingFound({ isAsked }: { isAsked: boolean }) {
  return (
    <Empty>
      {isAsked && <strong>Nothing found</strong>}
      <p>
        Enter a whole hash, address or id, the first eight digits of an id, a part of an email or of the name of a
        contractor, a batch or an organisation, or an <code>X-Request-Id</code>. Fewer than three letters find only what
        begins with them.
      </p>
    </Empty>
  )
}
