import { transferState } from '#lib/dashboard/lateness.ts'
import type { TransferLine } from '#lib/dashboard/transfers.ts'
import { formatUnits } from '#lib/text/money.ts'
import { between, Moment } from '../figures.tsx'
import { BatchLink, OrganisationLink, TransferLink } from '../record-links.tsx'
import { Status } from '../status.tsx'
import type { Column } from '../table.tsx'
import { KIND_WORDS } from './transfer-list.ts'

/** What a transfer is, in a few words: its kind, or the contractor that it pays. */
function titleOf({ kind, contractorName, recipient, account }: TransferLine): string {
  if (contractorName !== null) return `Payment to ${contractorName}`
  const isToItself = recipient === account
  return isToItself ? KIND_WORDS[kind] : `${KIND_WORDS[kind]} to ${recipient.slice(0, 4)}…${recipient.slice(-4)}`
}

/** Why it did not succeed, as a code: the page of the transfer explains it. */
function codeOf({ status, contractError, resultCode, refusalCode }: TransferLine): string {
  if (status === 'succeeded') return ''
  return contractError === null ? (resultCode ?? refusalCode ?? '') : `error ${contractError}`
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
          {transfer.settledAt && transfer.status === 'succeeded'
            ? between(transfer.createdAt, transfer.settledAt)
            : codeOf(transfer)}
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
