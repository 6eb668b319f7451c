import type { Metadata } from 'next'
import { missing } from '#app/missing.ts'
import { explainResult } from '#lib/dashboard/explanation.ts'
import { type LedgerTransaction, readLedgerTransaction } from '#lib/dashboard/ledger-transaction.ts'
import { readIfReachable } from '#lib/dashboard/reading.ts'
import { findTransferOfHash } from '#lib/dashboard/transfers.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import type { Network } from '#lib/stellar/network.ts'
import { groupDigits } from '#lib/text/figures.ts'
import { formatUnits } from '#lib/text/money.ts'
import { type Fact, Facts } from '../../facts.tsx'
import { Moment } from '../../figures.tsx'
import { Frame } from '../../frame.tsx'
import { Address, Hash } from '../../hash.tsx'
import RecordNotFound from '../../not-found.tsx'
import { recordPath } from '../../record-links.tsx'
import { requireOperator } from '../../require-operator.ts'
import { Status } from '../../status.tsx'
import { Empty } from '../../table.tsx'

export const metadata: Metadata = { title: 'Transaction' }

/** One transaction of the ledger, for networks that have no explorer. */
export default async function TransactionPage({ params }: PageProps<'/ledger/[hash]'>) {
  const { hash } = await params
  const { database, network, settings, now } = await requireOperator(`/ledger/${encodeURIComponent(hash)}`)
  if (!/^[0-9a-f]{64}$/.test(hash)) return missing(<RecordNotFound />)
  const name = settings.network.name
  const [lookup, transfer] = await Promise.all([
    readIfAnswering(network, hash),
    readIfReachable(database, (db) => findTransferOfHash(db, hash)),
  ])
  return (
    <Frame
      here="/transfers"
      title="Transaction"
      network={name}
      above={
        transfer
          ? { href: recordPath('transfer', transfer), name: 'Its transfer' }
          : { href: '/transfers', name: 'Transfers' }
      }
    >
      {lookup === undefined ? (
        <Empty>
          <strong>The ledger cannot be reached</strong>
          <p>Nothing is lost. This page retries automatically.</p>
        </Empty>
      ) : 'oldestLedger' in lookup ? (
        <Empty>
          <strong>This transaction was not found</strong>
          <p>
            <Hash value={hash} isWhole />
          </p>
          <p>
            The RPC has no record of it.
            {lookup.oldestLedger > 1 &&
              ` It may be older than ledger ${groupDigits(lookup.oldestLedger)}, the oldest that the RPC keeps.`}
          </p>
        </Empty>
      ) : (
        <TransactionFacts hash={hash} transaction={lookup} network={name} now={now()} />
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

interface TransactionFactsProps {
  hash: string
  transaction: LedgerTransaction
  network: string
  now: Date
}

function TransactionFacts({ hash, transaction, network, now }: TransactionFactsProps) {
  const why = transaction.succeeded ? '' : explainResult(transaction)
  const facts: Fact[] = [
    ['Result', <Status key="result" of="transfer" is={transaction.succeeded ? 'succeeded' : 'failed'} />],
    ...(why ? [['Why', why] as Fact] : []),
    ['Hash', <Hash key="hash" value={hash} isWhole />],
    ['Ledger', groupDigits(transaction.ledger)],
    ['Closed', <Moment key="closed" at={transaction.closedAt} now={now} />],
    ['Source', <Address key="source" value={transaction.source} network={network} isWhole />],
    [
      'Fee',
      <span key="fee">
        {formatUnits(transaction.feeCharged)} XLM, paid by{' '}
        <Address value={transaction.feeSource} network={network} isWhole />
        {transaction.isFeeBump && ' (fee bump)'}
      </span>,
    ],
    ...transaction.operations.map(
      (operation, index): Fact => [
        `Operation ${index + 1}`,
        operation.call ? (
          <span key={operation.call.name}>
            <code>{operation.call.name}</code> of <Address value={operation.call.contract} network={network} isWhole />
            {[...new Set(operation.call.addresses)].map((address) => (
              <span key={address} className="block text-soft">
                argument <Address value={address} network={network} isWhole />
              </span>
            ))}
          </span>
        ) : (
          <code key={operation.type}>{operation.type}</code>
        ),
      ],
    ),
  ]
  return <Facts facts={facts} />
}
