import type { RefusalLine } from '#lib/operator/refusals.ts'
import { Moment } from '../figures.tsx'
import { Hash } from '../hash.tsx'
import { type Column, Table } from '../table.tsx'
import { NothingFound } from './nothing-found.tsx'

/** What the sponsor did not pay for, and why; all of it, or what `search` has found. */
export function RefusalTable({ rows, now, search }: { rows: RefusalLine[]; now: Date; search: string }) {
  const columns: Column<RefusalLine>[] = [
    { head: 'Refused', cell: ({ createdAt }) => <Moment at={createdAt} now={now} /> },
    {
      head: 'Reason',
      cell: ({ words, reason, account, innerHash }) => (
        <>
          {words}
          <div className="xl:hidden">
            <Code reason={reason} />
          </div>
          <div className="mt-0.5 text-xs text-faint sm:hidden">
            account <Hash value={account} />
          </div>
          <div className="text-xs text-faint md:hidden">
            inner hash <Hash value={innerHash} />
          </div>
        </>
      ),
    },
    { head: 'Code', from: 'xl', cell: ({ reason }) => <Code reason={reason} /> },
    { head: 'Account', from: 'sm', cell: ({ account }) => <Hash value={account} /> },
    { head: 'Inner hash', from: 'md', cell: ({ innerHash }) => <Hash value={innerHash} /> },
  ]
  return (
    <Table
      caption="Refused transfers, newest first"
      columns={columns}
      rows={rows}
      keyOf={({ sequence }) => String(sequence)}
      empty={search === '' ? <NoRefusals /> : <NoneFound search={search} />}
    />
  )
}

const Code = ({ reason }: { reason: string }) => <code className="text-[0.8125rem] text-soft">{reason}</code>

function NoneFound({ search }: { search: string }) {
  return (
    <NothingFound search={search}>
      A search among refusals finds the whole address of who was to pay (G…), and the whole inner hash.
    </NothingFound>
  )
}

function NoRefusals() {
  return (
    <>
      <strong>Nothing has been refused</strong>
      <p>What the sponsor’s policy, its quotas or its float do not allow is listed here with the reason.</p>
    </>
  )
}
