import Link from 'next/link'
import { transferState } from '#lib/dashboard/lateness.ts'
import type { TransferLine } from '#lib/dashboard/transfers.ts'
import { formatUnits } from '#lib/text/money.ts'
import { between, Moment } from '../figures.tsx'
import { addressOf } from '../query.ts'
import { BatchLink, OrganisationLink, TransferLink } from '../record-links.tsx'
import { Status } from '../status.tsx'
import type { Column } from '../table.tsx'
import { KIND_WORDS } from './transfer-list.ts'

/** Describes a transfer in a few words: its kind, or the contractor that it pays. */
function titleOf({ kind, contractorName, recipient, account }: TransferLine): string {
  if (contractorName !== null) return `Payment to ${contractorName}`
  const isToItself = recipient === account
  return isToItself ? KIND_WORDS[kind] : `${KIND_WORDS[kind]} to ${recipient.slice(0, 4)}…${recipient.slice(-4)}`
}

/** Why it did not succeed: a code that links to all transfers with the same reason. The transfer's page explains it. */
function Code({ transfer: { status, contractError, resultCode, refusalCode } }: { transfer: TransferLine }) {
  if (status === 'succeeded') return null
  const reason = contractError ?? resultCode
  if (reason === null || status === 'open') return refusalCode
  return (
    <Link
      href={addressOf('/transfers', { view: 'failed', reason: String(reason) })}
      prefetch={false}
      title="All failed transfers with this reason"
      className="inline-block min-h-6 leading-6 underline-offset-4 hover:text-accent hover:underline"
    >
      {contractError === null ? resultCode : `error ${contractError}`}
    </Link>
  )
}

/** One line for each transfer: when, who, what, result and fee. Its page has the rest. */
export const transferColumns = (now: Date): Column<TransferLine>[] => [
  { head: 'Accepted', cell: ({ createdAt }) => <Moment at={createdAt} now={now} /> },
  {
    head: 'Organisation',
    from: 'lg',
    isRepeated: true,
    cell: ({ organisation, organisationName }) =>
      organisation === null ? '–' : <OrganisationLink id={organisation} name={organisationName ?? ''} />,
  },
  {
    head: 'Transfer',
    from: 'sm',
    isRepeated: true,
    cell: (transfer) => (
      <span className="font-medium">
        <TransferLink id={transfer.id} name={titleOf(transfer)} />
      </span>
    ),
  },
  {
    head: 'Batch',
    from: 'xl',
    cell: ({ batch, batchName }) => (batch === null ? '–' : <BatchLink id={batch} name={batchName ?? ''} />),
  },
  {
    head: 'Result',
    cell: (transfer) => (
      <>
        {/* The space allows a line break between status and details in a narrow column. */}
        <Status of="transfer" is={transferState(transfer, now)} />{' '}
        <span className="inline-block text-xs whitespace-nowrap text-faint sm:ml-1">
          {transfer.settledAt && transfer.status === 'succeeded' ? (
            between(transfer.createdAt, transfer.settledAt)
          ) : (
            <Code transfer={transfer} />
          )}
        </span>
      </>
    ),
  },
  {
    head: 'Fee, XLM',
    from: 'sm',
    isRepeated: true,
    isNumber: true,
    cell: ({ feeCharged }) => (feeCharged === null ? '–' : formatUnits(feeCharged)),
  },
]
