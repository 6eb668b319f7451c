import { Transaction, TransactionBuilder } from '@stellar/stellar-sdk'
import { z } from 'zod'
import { readAccount } from './accounts.ts'
import type { Network } from './network.ts'

/**
 * The last sequence number that the account at `address` has used, undefined without an account, and the ledger of
 * the answer.
 * @throws Refusal `unavailable`
 */
export async function readSequence(
  network: Network,
  address: string,
): Promise<{ sequence: bigint | undefined; latestLedger: number }> {
  const { account, latestLedger } = await readAccount(network.server, address)
  return { sequence: account?.seqNum, latestLedger }
}

const PAGE = z.object({ transactions: z.array(z.object({ envelopeXdr: z.string() })), cursor: z.string() })

/** The most transactions that the RPC puts on a page. */
const PAGE_LIMIT = 200

/**
 * Whether another transaction than that of `hash` (64 hex digits) has used the sequence number of `account`, in a
 * ledger from `startLedger` on: then that one can never apply. It asks for the other, and not for the absence of the
 * one: an RPC that does not show what it has yet cannot be mistaken for proof.
 * @throws Refusal `unavailable`, also when `startLedger` is not within the history of the RPC
 */
export async function isSequenceUsedByAnother(
  network: Network,
  sought: { account: string; sequence: bigint; hash: string; startLedger: number },
): Promise<boolean> {
  const { startLedger } = sought
  let params: Record<string, unknown> = { startLedger, pagination: { limit: PAGE_LIMIT } }
  for (;;) {
    const { transactions, cursor } = await network.call('getTransactions', params, PAGE)
    if (transactions.some(({ envelopeXdr }) => usesSequence(network, envelopeXdr, sought))) return true
    if (transactions.length < PAGE_LIMIT) return false
    params = { pagination: { cursor, limit: PAGE_LIMIT } }
  }
}

function usesSequence(
  { passphrase }: Network,
  envelope: string,
  { account, sequence, hash }: { account: string; sequence: bigint; hash: string },
): boolean {
  const transaction = decode(envelope, passphrase)
  return (
    transaction !== undefined &&
    transaction.source === account &&
    BigInt(transaction.sequence) === sequence &&
    Buffer.from(transaction.hash()).toString('hex') !== hash
  )
}

/** The transaction, under a fee bump the inner one; undefined for what the SDK cannot decode. */
function decode(envelope: string, passphrase: string): Transaction | undefined {
  try {
    const decoded = TransactionBuilder.fromXdr(envelope, passphrase)
    return decoded instanceof Transaction ? decoded : decoded.innerTransaction
  } catch {
    return undefined
  }
}
