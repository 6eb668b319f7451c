import { missing } from '#app/missing.ts'
import { causeOfResult } from '#lib/dashboard/explanation.ts'
import { type LedgerTransaction, readLedgerTransaction } from '#lib/dashboard/ledger-transaction.ts'
import { readIfReachable } from '#lib/dashboard/reading.ts'
import { findTransferOfHash } from '#lib/dashboard/transfers.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import type { Network } from '#lib/stellar/network.ts'
import { groupDigits } from '#lib/text/figures.ts'
import { formatUnits } from '#lib/text/money.ts'
import { FactList, type Facts } from '../../facts.tsx'
import { Moment, type View } from '../../figures.tsx'
import { Frame, linkTo } from '../../frame.tsx'
import { Address, Hash } from '../../hash.tsx'
import RecordNotFound from '../../not-found.tsx'
import { recordPath } from '../../record-links.tsx'
import { requireOperator } from '../../require-operator.ts'
import { Status } from '../../status.tsx'
import { Empty } from '../../table.tsx'

export const metadata = { title: 'Transaction' }

/** One transaction of the ledger, for networks that have no explorer. */
export default async function TransactionPage({ params }: PageProps<'/ledger/[hash]'>) {
  const { hash } = await params
  const { database, network, settings, now } = await requireOperator(`/ledger/${encodeURIComponent(hash)}`)
  if (!/^[0-9a-f]{64}$/.test(hash)) return missing(<RecordNotFound />)
  const { name } = settings.network
  const [transaction, transfer] = await Promise.all([
    readIfAnswering(network, hash),
    readIfReachable(database, (db) => findTransferOfHash(db, hash)),
  ])
  const above = transfer ? { href: recordPath('transfer', transfer), name: 'Its transfer' } : linkTo('/transfers')
  return (
    <Frame here="/transfers" title="Transaction" network={name} above={above}>
      {transaction === undefined ? (
        <Empty title="The ledger cannot be reached">Nothing is lost. This page retries automatically.</Empty>
      ) : transaction.oldestLedger !== undefined ? (
        <Empty title="This transaction was not found">
          <p>
            <Hash value={hash} isWhole />
          </p>
          <p>
            The RPC has no record of it.
            {transaction.oldestLedger > 1 &&
              ` It may be older than ledger ${groupDigits(transaction.oldestLedger)}, the oldest that the RPC keeps.`}
          </p>
        </Empty>
      ) : (
        <FactList facts={factsOf(hash, transaction, { network: name, now: now() })} />
      )}
    </Frame>
  )
}

async function readIfAnswering(network: Network, hash: string) {
  try {
    return await readLedgerTransaction(network, hash)
  } catch (error) {
    if (error instanceof LedgerError && error.code === 'unavailable') return undefined
    throw error
  }
}

function factsOf(hash: string, transaction: LedgerTransaction, { network, now }: View): Facts {
  const { succeeded, operations } = transaction
  return {
    Result: <Status is={succeeded ? 'succeeded' : 'failed'} />,
    Why: !succeeded && causeOfResult(transaction).meaning,
    Hash: <Hash value={hash} isWhole />,
    Ledger: groupDigits(transaction.ledger),
    Closed: <Moment at={transaction.closedAt} now={now} />,
    Source: <Address value={transaction.source} network={network} isWhole />,
    Fee: (
      <>
        {formatUnits(transaction.feeCharged)} XLM, paid by{' '}
        <Address value={transaction.feeSource} network={network} isWhole />
        {transaction.isFeeBump && ' (fee bump)'}
      </>
    ),
    ...Object.fromEntries(
      operations.map(({ type, call }, index) => [
        `Operation ${index + 1}`,
        call ? <Call key={type} {...call} network={network} /> : <code key={type}>{type}</code>,
      ]),
    ),
  }
}

type CallProps = NonNullable<LedgerTransaction['operations'][number]['call']> & { network: string }

function Call({ name, contract, addresses, network }: CallProps) {
  return (
    <>
      <code>{name}</code> of <Address value={contract} network={network} isWhole />
      {[...new Set(addresses)].map((address) => (
        <span key={address} className="block text-soft">
          argument <Address value={address} network={network} isWhole />
        </span>
      ))}
    </>
  )
}
