import Link from 'next/link'
import { transferState } from '#lib/dashboard/lateness.ts'
import type { TransferLine } from '#lib/dashboard/transfers.ts'
import { formatUnits } from '#lib/text/money.ts'
import { ActionForm } from '../action-form.tsx'
import { between, Moment } from '../figures.tsx'
import { Address } from '../hash.tsx'
import { addressOf } from '../query.ts'
import { BatchLink, ContractorLink, OrganisationLink } from '../record-links.tsx'
import { Status } from '../status.tsx'
import type { Column } from '../table.tsx'
import { TransferHashes } from './transfer-hashes.tsx'
import { whyNotSucceeded } from './transfer-list.ts'

interface Shown {
  transfer: TransferLine
  network: string
  faucet: string | undefined
}

function feeOf({ status, feeCharged }: TransferLine): string {
  if (feeCharged !== null) return `Fee ${formatUnits(feeCharged)} XLM`
  return status === 'expired' ? 'No fee charged' : 'Fee not known yet'
}

/** The columns of a transfer. On a narrow page, the first column includes the values of hidden columns. */
export const transferColumns = (network: string, now: Date, faucet: string | undefined): Column<TransferLine>[] => [
  {
    head: 'Accepted',
    cell: ({ createdAt }) => <Moment at={createdAt} now={now} />,
    beneath: (transfer) => (
      <>
        <div className="sm:hidden">
          <Why transfer={transfer} now={now} />
        </div>
        <div className="md:hidden">
          <Parties transfer={transfer} network={network} faucet={faucet} />
          <Payout transfer={transfer} />
        </div>
        <p className="text-xs text-faint sm:hidden">
          <span className="whitespace-nowrap">{feeOf(transfer)}</span>
          {' · '}
          <span className="whitespace-nowrap">Bid {formatUnits(transfer.bid)} XLM</span>
        </p>
        <details className="mt-0.5 lg:hidden">
          <summary className="w-fit text-xs leading-6 text-soft">Hashes</summary>
          <TransferHashes transfer={transfer} network={network} />
        </details>
      </>
    ),
  },
  {
    head: 'From → to',
    from: 'md',
    cell: (transfer) => (
      <>
        <Parties transfer={transfer} network={network} faucet={faucet} />
        <div className="xl:hidden">
          <Payout transfer={transfer} />
        </div>
      </>
    ),
  },
  { head: 'Pays', from: 'xl', cell: (transfer) => (transfer.contractor ? <Payout transfer={transfer} /> : '–') },
  {
    head: 'Result',
    cell: (transfer) => (
      <>
        {/* The space allows a line break between status and time in a narrow column. */}
        <Status of="transfer" is={transferState(transfer, now)} />{' '}
        {transfer.settledAt && transfer.status === 'succeeded' && (
          <span className="inline-block text-xs whitespace-nowrap text-faint sm:ml-1">
            {between(transfer.createdAt, transfer.settledAt)}
          </span>
        )}
        <div className="max-w-60 max-sm:hidden">
          <Why transfer={transfer} now={now} />
        </div>
        {transfer.status === 'open' && (
          <ActionForm
            action="look-up-transfer"
            subject={transfer.id}
            back={addressOf('/transfers', { q: transfer.innerHash })}
            label="Look up now"
          />
        )}
      </>
    ),
  },
  { head: 'Hashes', from: 'lg', cell: (transfer) => <TransferHashes transfer={transfer} network={network} /> },
  {
    head: 'Charged, XLM',
    from: 'sm',
    isNumber: true,
    cell: ({ feeCharged, bid }) => (
      <>
        {feeCharged === null ? '–' : formatUnits(feeCharged)}
        <div className="text-xs whitespace-nowrap text-faint">{formatUnits(bid)} bid</div>
      </>
    ),
  },
]

/** Why the transfer did not succeed, if it did not. */
function Why({ transfer, now }: Pick<Shown, 'transfer'> & { now: Date }) {
  const why = whyNotSucceeded(transfer, now)
  return why && <p className="text-xs text-soft">{why}</p>
}

function Parties({ transfer, network, faucet }: Shown) {
  const { account, recipient, quotaAccount, job, organisation, organisationName } = transfer
  return (
    <>
      {organisation && organisationName && (
        <div className="text-xs text-soft">
          <OrganisationLink id={organisation} name={organisationName} path="/transfers" />
        </div>
      )}
      {account === faucet && <div className="text-xs text-soft">Deposit of the faucet</div>}
      <Address value={account} network={network} />{' '}
      <span className="inline-flex max-w-full items-baseline gap-1">
        <span className="text-faint">→</span> <Address value={recipient} network={network} />
      </span>
      {quotaAccount && (
        <div className="text-xs text-faint">
          <p>
            {job ? (
              <Link
                href={addressOf('/jobs', { q: job })}
                prefetch={false}
                className="text-soft underline underline-offset-4 hover:text-accent"
              >
                relay job
              </Link>
            ) : (
              'relay'
            )}
            , for
          </p>
          {/* It starts at the same place when it is expanded, even under a double click. */}
          <Address value={quotaAccount} network={network} />
        </div>
      )}
    </>
  )
}

/** The payee of a transfer, and the batch of its payout if it has one. */
function Payout({ transfer: { batch, batchName, contractor, contractorName } }: Pick<Shown, 'transfer'>) {
  if (!contractor) return null
  return (
    <div className="max-w-56 leading-snug xl:min-w-44">
      <ContractorLink id={contractor} name={contractorName ?? ''} />
      {batch && (
        <div className="text-xs text-soft">
          <BatchLink id={batch} name={batchName ?? ''} />
        </div>
      )}
    </div>
  )
}
