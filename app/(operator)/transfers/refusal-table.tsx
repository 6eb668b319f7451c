import type { RefusalLine } from '#lib/operator/refusals.ts'
import { Moment } from '../figures.tsx'
import { Hash } from '../hash.tsx'
import { type Column, Table } from '../table.tsx'

/** What the sponsor did not pay for, and why. */
export function RefusalTable({ rows, now }: { rows: RefusalLine[]; now: Date }) {
  const columns: Column<RefusalLine>[] = [
    { head: 'Refused', cell: ({ createdAt }) => <Moment at={createdAt} now={now} /> },
    {
      head: 'Reason',
      cell: ({ words, account }) => (
        <>
          {words}
          <div className="sm:hidden">
            <Hash value={account} />
          </div>
        </>
      ),
    },
    { head: 'Code', from: 'lg', cell: ({ reason }) => <code className="text-[0.8125rem] text-soft">{reason}</code> },
    { head: 'Account', from: 'sm', cell: ({ account }) => <Hash value={account} /> },
    { head: 'Inner hash', from: 'md', cell: ({ innerHash }) => <Hash value={innerHash} /> },
  ]
  return (
    <Table
      caption="Refused transfers, newest first"
      columns={columns}
      rows={rows}
      keyOf={({ sequence }) => String(sequence)}
      empty={
        <>
          <strong>Nothing has been refused</strong>
          <p>What the sponsor’s policy, its quotas or its float do not allow is listed here with the reason.</p>
        </>
      }
    />
  )
}
