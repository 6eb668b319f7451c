import { z } from 'zod'
import { describeFailure, log } from '#lib/observability/log.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import type { Network } from '#lib/stellar/network.ts'
import { FOUND, type FoundTransaction } from '#lib/stellar/transaction.ts'
import { type Expected, type LedgerRecord, readRecord } from './decide.ts'
import { hashesOf, maxTimeOf, type RecordedTransfer } from './rows.ts'

const PAGE = z.object({
  transactions: z.array(FOUND.extend({ txHash: z.string() })),
  latestLedger: z.number().int(),
  latestLedgerCloseTimestamp: z.number().int(),
  cursor: z.string().regex(/^\d*$/),
})

/** The maximum number of transactions on a page of the RPC, and of pages per walk. */
const PAGE_LIMIT = 200
const MAX_PAGES = 50

/**
 * Looks up many transfers at once, in the pages of all transactions since `startLedger`, so that the cost of waiting grows with
 * ledgers and not with transfers: two lookups by hash would already exceed the goal of 2.5 calls per transfer. Decodes only
 * transactions with a requested hash: others may be of a later protocol. `latestLedger`: the last one that was read whole. `absent`:
 * the transfers that no ledger up to it includes and that are still valid. Those without a record either need a separate lookup.
 * @throws LedgerError `unavailable`, also if `startLedger` isn't within the history of the RPC, or its pages don't end
 */
export async function walkLedgers(network: Network, sought: readonly RecordedTransfer[], startLedger: number) {
  const byHash = new Map(
    sought.flatMap((recorded) =>
      recorded.envelopes.flatMap((one) => hashesOf(one).map((hash) => [hash, { recorded, ...one }] as const)),
    ),
  )
  /** null where the RPC's record can't be read or contradicts itself */
  const records = new Map<RecordedTransfer, LedgerRecord | null>()
  let params: Record<string, unknown> = { startLedger, pagination: { limit: PAGE_LIMIT } }
  let last = -1n
  for (let pages = 0; pages < MAX_PAGES; pages += 1) {
    const page = await network.call('getTransactions', params, PAGE)
    for (const transaction of page.transactions) {
      const match = byHash.get(transaction.txHash)
      if (!match) continue
      const { recorded, innerHash } = match
      const { sponsor } = recorded.transfer
      const record = tryToRead(transaction, { innerHash, sponsor, passphrase: network.passphrase })
      // If a transfer has several records, the record that used the sequence number counts.
      if (!records.get(recorded)?.consumed) records.set(recorded, record)
    }
    if (page.transactions.length < PAGE_LIMIT) {
      const { latestLedger, latestLedgerCloseTimestamp: closedAt } = page
      const absent = sought.filter((one) => !records.has(one) && closedAt <= maxTimeOf(one.envelopes))
      const readable = new Map([...records].flatMap(([one, record]) => (record ? [[one, record]] : [])))
      return { records: readable, absent, latestLedger }
    }
    // A cursor that doesn't advance would fetch the same page forever.
    if (BigInt(page.cursor || 0) <= last) throw new LedgerError('unavailable', 'the RPC gives the same page again')
    last = BigInt(page.cursor || 0)
    params = { pagination: { cursor: page.cursor, limit: PAGE_LIMIT } }
  }
  throw new LedgerError('unavailable', 'the pages of the RPC have no end')
}

/** Logs a record that can't be read or contradicts itself, and returns null. */
export function tryToRead(transaction: FoundTransaction, expected: Expected): LedgerRecord | null {
  try {
    return readRecord(transaction, expected)
  } catch (error) {
    log('error', 'submission', { hash: expected.innerHash, failure: describeFailure(error) })
    return null
  }
}
