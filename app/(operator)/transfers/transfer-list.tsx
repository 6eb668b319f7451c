import { causeOfTransfer } from '#lib/dashboard/explanation.ts'
import { transferState, WHY_OVERDUE } from '#lib/dashboard/lateness.ts'
import { TRANSFERS, type TransferLine } from '#lib/dashboard/transfers.ts'
import { formatUnits } from '#lib/text/money.ts'
import { fileColumn, linkColumn, organisationColumn, timeColumn } from '../columns.tsx'
import { between } from '../figures.tsx'
import { BY_TIME, type ListDisplay } from '../list-display.ts'
import { addressOf } from '../query.ts'
import { PageLink, RecordLink } from '../record-links.tsx'
import { Status, statusWord } from '../status.tsx'
import { DemoHint } from '../table.tsx'

/** Why the transfer did not succeed; empty if it did. */
export function whyNotSucceeded(transfer: TransferLine, now: Date): string {
  return transferState(transfer, now) === 'overdue' ? WHY_OVERDUE : causeOfTransfer(transfer).meaning
}

export const KIND_WORDS: Record<TransferLine['kind'], string> = {
  transfer: 'Confidential transfer',
  delegated: 'Delegated transfer',
  register: 'Registration',
  merge: 'Merge',
  set_spender: 'Delegation',
  revoke_spender: 'Revocation',
  deposit: 'Deposit of the faucet',
}

/** The transfers that the sponsor paid for, with their recipients. */
export const TRANSFER_LIST: ListDisplay<typeof TRANSFERS.filters, TransferLine> = {
  records: TRANSFERS,
  here: '/transfers',
  title: 'Transfers',
  nouns: ['transfer', 'transfers'],
  sorts: [...BY_TIME, ['fee', 'Highest fee (newest 10,000)']],
  columns: [
    timeColumn('Accepted', ({ createdAt }) => createdAt),
    organisationColumn({ from: 'lg' }),
    fileColumn('From', ({ account }) => account),
    fileColumn('To', ({ recipient }) => recipient),
    fileColumn('Relay, for', ({ quotaAccount }) => quotaAccount),
    fileColumn('Pays', ({ contractorName }) => contractorName),
    { ...linkColumn('Transfer', 'transfer', (row: TransferLine) => ({ id: row.id, name: titleOf(row) })), from: 'sm' },
    {
      head: 'Batch',
      from: 'xl',
      isOmitted: true,
      cell: ({ batch, batchName }) => (batch === null ? '–' : <RecordLink type="batch" id={batch} name={batchName} />),
      value: ({ batchName }) => batchName,
    },
    {
      head: 'Result',
      cell: (transfer, { now }) => (
        <>
          {/* The space allows a line break between status and details in a narrow column. */}
          <Status is={transferState(transfer, now)} />{' '}
          <span className="inline-block text-xs whitespace-nowrap text-faint sm:ml-1">
            {transfer.settledAt && transfer.status === 'succeeded' ? (
              between(transfer.createdAt, transfer.settledAt)
            ) : (
              <Code transfer={transfer} />
            )}
          </span>
        </>
      ),
      value: (transfer, now) => statusWord(transferState(transfer, now)),
    },
    fileColumn('Why', whyNotSucceeded),
    fileColumn('Settled (UTC)', ({ settledAt }) => settledAt),
    {
      head: 'Fee, XLM',
      from: 'sm',
      isNumber: true,
      cell: ({ feeCharged }) => (feeCharged === null ? '–' : formatUnits(feeCharged)),
      fileHead: 'Charged, XLM',
      value: ({ feeCharged }) => (feeCharged === null ? null : formatUnits(feeCharged)),
    },
    fileColumn('Bid, XLM', ({ bid }) => formatUnits(bid)),
    fileColumn('Transaction', ({ ledgerHash }) => ledgerHash),
    fileColumn('Outer hash', ({ outerHash }) => outerHash),
    fileColumn('Inner hash', ({ innerHash }) => innerHash),
    fileColumn('Relay job', ({ job }) => job),
  ],
  empty: ({ network }) => ({
    title: 'No transfers yet',
    children: (
      <>
        An employer’s wallet signs one and sends it with <code>POST /transfer</code>.
        <DemoHint network={network.name} what="To see five of them" />
      </>
    ),
  }),
}

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
    <PageLink
      href={addressOf('/transfers', { view: 'failed', reason: String(reason) })}
      title="All failed transfers with this reason"
      name={contractError === null ? String(resultCode) : `error ${contractError}`}
      className="inline-block min-h-6 leading-6 underline-offset-4 hover:text-accent hover:underline"
    />
  )
}
