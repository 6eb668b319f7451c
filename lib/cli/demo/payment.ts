import { StrKey, type xdr } from '@stellar/stellar-sdk'
import { patiently } from '#lib/sdk/patience.ts'
import { formatUnits } from '#lib/text/money.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import { buildTransfer } from '#lib/wallet/calls.ts'
import type { Opening } from '#lib/wallet/commitment.ts'
import type { Holder } from '#lib/wallet/keys.ts'
import type { TestNetwork } from '../client/participants.ts'

/** A payment as the ledger applied it; `sent` in base units. */
export interface Payment {
  name: string
  sent: bigint
  hash: string
  ledger: number
  feeStroops: bigint
  paidBy: string
}

/**
 * Builds and signs one confidential transfer, submits it through `transfer` until it is decided, and reads its cost from the
 * ledger.
 */
export async function payOne(
  network: TestNetwork,
  employer: Holder,
  opening: Opening,
  { to, sent }: { to: Holder; sent: bigint },
  transfer: (signedXdr: string) => Promise<string>,
): Promise<Omit<Payment, 'name' | 'sent'> & { next: Opening }> {
  const built = await buildTransfer(network, employer, { to: to.address, amount: sent, opening })
  const hash = await patiently(() => transfer(built.signedXdr))
  const transaction = await network.rpc.getTransaction(hash)
  if (transaction.status !== 'SUCCESS') throw new Error(`transaction ${hash} was not found on the ledger`)
  return {
    hash,
    ledger: transaction.ledger,
    feeStroops: transaction.resultXdr.feeCharged,
    paidBy: feeSource(transaction.envelopeXdr),
    next: built.next,
  }
}

function feeSource(envelope: xdr.TransactionEnvelope): string {
  if (envelope.type === 'envelopeTypeTxFeeBump' && envelope.feeBump.tx.feeSource.type === 'keyTypeEd25519') {
    return StrKey.encodeEd25519PublicKey(envelope.feeBump.tx.feeSource.ed25519.toBytes())
  }
  throw new Error('the transfer was not applied as a fee bump')
}

/** An account's balance of XLM, in stroops. */
export async function nativeBalance(network: TestNetwork, address: string): Promise<bigint> {
  return (await network.rpc.getAccountEntry(address)).balance
}

/** The confidential balance of an account, received and spendable, in base units. Only its viewing secret decrypts it. */
export async function decryptedBalance(network: TestNetwork, holder: Holder): Promise<bigint> {
  const balance = await syncBalance(network, holder)
  return balance.receiving.value + balance.spendable.value
}

/** The payments as a table of text. */
export function table(payments: readonly Payment[]): string {
  const rows = [
    ['contractor', 'transaction', 'ledger', 'fee (XLM)', 'paid by'],
    ...payments.map(({ name, hash, ledger, feeStroops, paidBy }) => [
      name,
      hash,
      String(ledger),
      formatUnits(feeStroops),
      `${paidBy.slice(0, 4)}…${paidBy.slice(-4)} (sponsor)`,
    ]),
  ]
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? []
  return rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')).join('\n')
}
