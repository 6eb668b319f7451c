import { z } from 'zod'
import { Refusal } from '#lib/http/refusal.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { lookUp } from '#lib/stellar/look-up.ts'
import type { Network } from '#lib/stellar/network.ts'
import { type LedgerRecord, readRecord } from './ledger-record.ts'
import type { TransferRecord } from './transfer-record.ts'

/** What the network says of a transfer: how it ended there, that it cannot get there any more, or neither. */
export type Look = { found: LedgerRecord } | { found: null; expired: boolean; dead: boolean; latestLedger: number }

type Sought = Pick<TransferRecord, 'outerHash' | 'innerHash' | 'maxTime' | 'sinceLedger'>

/**
 * Looks one transfer up by both its hashes, since a client may have sent its inner transaction by itself.
 *
 * It is dead when neither hash is known in answers whose own last ledger closed after maxTime (CAP-21: no later ledger
 * can include it) and whose history reaches back to when it was recorded. No clock of ours has a say.
 * @throws Refusal `unavailable`
 */
export async function lookByHashes(network: Network, sought: Sought): Promise<Look> {
  const outer = await lookUp(network, sought.outerHash)
  if (outer.status !== 'NOT_FOUND')
    return { found: readRecord(outer, { ...sought, hash: sought.outerHash, ours: true }) }
  const inner = await lookUp(network, sought.innerHash)
  if (inner.status !== 'NOT_FOUND') {
    // The RPC files a fee bump under both hashes: a ledger that closed between the two questions may hold our own.
    const again = await lookUp(network, sought.outerHash)
    if (again.status !== 'NOT_FOUND') {
      return { found: readRecord(again, { ...sought, hash: sought.outerHash, ours: true }) }
    }
    // One address may stand for several nodes, and one that is behind says nothing of that ledger.
    if (again.latestLedger < inner.ledger) throw new Refusal('unavailable', 'the RPC has fallen behind itself')
    return { found: readRecord(inner, { ...sought, hash: sought.innerHash, ours: false }) }
  }
  const answers = [outer, inner]
  const expired = answers.every((answer) => answer.latestLedgerCloseTime > sought.maxTime)
  return {
    found: null,
    expired,
    dead: expired && answers.every((answer) => answer.oldestLedger <= sought.sinceLedger),
    latestLedger: Math.min(outer.latestLedger, inner.latestLedger),
  }
}

const PAGE = z.object({
  transactions: z.array(
    z.object({
      status: z.enum(['SUCCESS', 'FAILED']),
      txHash: z.string(),
      ledger: z.number().int(),
      resultXdr: z.string(),
      diagnosticEventsXdr: z.array(z.string()).nullish(),
    }),
  ),
  latestLedger: z.number().int(),
  latestLedgerCloseTimestamp: z.number().int(),
  cursor: z.string(),
})

/** The most transactions that the RPC puts on a page. */
const PAGE_LIMIT = 200

/** What a walk over the ledgers found, and how far it got. */
export interface Walk {
  /** by inner hash; null where the RPC's record cannot be read or contradicts itself */
  records: Map<string, LedgerRecord | null>
  /** the last ledger that was read whole */
  latestLedger: number
  /** unix seconds */
  latestCloseTime: number
}

/**
 * Looks many transfers up at once, in the pages of all transactions since `startLedger`, so that the cost of waiting
 * grows with ledgers and not with transfers. The pages stay as text: only results of our own hashes are decoded, and
 * one transaction that cannot be decoded spoils nothing.
 * @throws Refusal `unavailable`, also when `startLedger` is not within the history of the RPC
 */
export async function walkLedgers(network: Network, sought: Sought[], startLedger: number): Promise<Walk> {
  const byHash = new Map<string, Sought>()
  for (const transfer of sought) {
    byHash.set(transfer.outerHash, transfer)
    byHash.set(transfer.innerHash, transfer)
  }
  const records = new Map<string, LedgerRecord | null>()
  let cursor: string | undefined
  let params: Record<string, unknown> = { startLedger, pagination: { limit: PAGE_LIMIT } }
  for (;;) {
    const page = await network.call('getTransactions', params, PAGE)
    for (const transaction of page.transactions) {
      const transfer = byHash.get(transaction.txHash)
      if (!transfer) continue
      records.set(transfer.innerHash, tryReadRecord({ ...transaction, latestLedger: page.latestLedger }, transfer))
    }
    if (page.transactions.length < PAGE_LIMIT) {
      return { records, latestLedger: page.latestLedger, latestCloseTime: page.latestLedgerCloseTimestamp }
    }
    if (page.cursor === cursor) throw new Refusal('unavailable', 'the RPC gives the same page again')
    cursor = page.cursor
    params = { pagination: { cursor, limit: PAGE_LIMIT } }
  }
}

function tryReadRecord(
  found: Parameters<typeof readRecord>[0] & { txHash: string },
  transfer: Sought,
): LedgerRecord | null {
  try {
    return readRecord(found, { ...transfer, hash: found.txHash, ours: found.txHash === transfer.outerHash })
  } catch (error) {
    log('error', 'settlement', { hash: transfer.innerHash, failure: describeFailure(error) })
    return null
  }
}
