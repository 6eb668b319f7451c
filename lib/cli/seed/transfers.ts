import { envelopes, transfers } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { partsOf } from '#lib/db/parts.ts'
import type { Source } from './random.ts'

/** A transfer of the seed. */
export interface SeededTransfer {
  id: string
  innerHash: string
  outerHash: string
  account: string
  recipient: string
  organisation: string
  /** its payout; a transfer of the relay has none */
  payout?: string
  /** whose quota it counts against, if not the account's own */
  quotaAccount?: string
  outcome: 'succeeded' | 'failed' | 'expired' | 'open'
  createdAt: Date
  settledAt: Date | null
}

/** What a transfer is known by. */
export function newHashes(source: Source) {
  const id = source.hash().replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*/, '$1-$2-$3-$4-$5')
  return { id, innerHash: source.hash(), outerHash: source.hash() }
}

/** What the network charges for a confidential transfer, in stroops, more or less. */
const FEE = 229_000n
const BID = 2n * FEE + 200n

/** An open transfer that can never be decided here: the ledger never saw it, and its time has not passed. */
const FAR_MS = 365 * 86_400_000

/** @returns the fees that the sponsor paid */
export async function seedTransfers(
  db: Database,
  sponsor: string,
  source: Source,
  planned: readonly SeededTransfer[],
): Promise<bigint> {
  const rows = planned.map(({ outcome, settledAt, innerHash, outerHash, ...transfer }, index) => {
    const isApplied = outcome === 'succeeded' || outcome === 'failed'
    const feeCharged = isApplied ? FEE + BigInt(source.number(9_000)) : outcome === 'expired' ? 0n : null
    return {
      ...transfer,
      sponsor,
      sequenceNumber: BigInt(index + 1),
      bid: BID,
      quotaDay: transfer.createdAt.toISOString().slice(0, 10),
      recordedLedger: 1,
      status: outcome,
      resultCode: outcome === 'succeeded' ? 'txSuccess' : outcome === 'failed' ? 'txFailed' : null,
      contractError: outcome === 'failed' ? 3506 : null,
      hash: isApplied ? outerHash : null,
      applied: isApplied ? innerHash : null,
      ledger: isApplied ? 1_000 + index : null,
      feeCharged,
      settledAt,
    }
  })
  const signed = planned.map(({ id, innerHash, outerHash, outcome, createdAt }) => {
    const end = createdAt.getTime() + (outcome === 'open' ? FAR_MS : 300_000)
    return {
      innerHash,
      outerHash,
      transfer: id,
      // There is nothing to send: the ledger has never heard of it.
      signed: null,
      bid: BID,
      maxTime: Math.floor(end / 1000),
      recordedAt: createdAt,
      firstSentAt: createdAt,
      lastSentAt: createdAt,
    }
  })
  for (const part of partsOf(rows)) await db.insert(transfers).values(part)
  for (const part of partsOf(signed)) await db.insert(envelopes).values(part)
  return rows.reduce((sum, { feeCharged }) => sum + (feeCharged ?? 0n), 0n)
}
