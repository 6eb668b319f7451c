import { sponsoredTransfers } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import type { Source } from './random.ts'

/** A transfer of the seed. */
export interface SeededTransfer {
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

export const newHashes = (source: Source) => ({ innerHash: source.hash(), outerHash: source.hash() })

/** What the network charges for a confidential transfer, in stroops, more or less. */
const FEE = 229_000n

/** An open transfer that can never be decided here: the ledger never saw it, and its time has not passed. */
const FAR_MS = 365 * 86_400_000

/** @returns the fees that the sponsor paid */
export async function seedTransfers(
  db: Database,
  sponsor: string,
  source: Source,
  transfers: readonly SeededTransfer[],
): Promise<bigint> {
  const rows = transfers.map(({ outcome, settledAt, ...transfer }, index) => {
    const isApplied = outcome === 'succeeded' || outcome === 'failed'
    const feeCharged = isApplied ? FEE + BigInt(source.number(9_000)) : outcome === 'expired' ? 0n : null
    const maxTime = transfer.createdAt.getTime() + (outcome === 'open' ? FAR_MS : 300_000)
    return {
      ...transfer,
      sponsor,
      envelope: 'seeded',
      bid: 2n * FEE + 200n,
      maxTime: Math.floor(maxTime / 1000),
      quotaDay: transfer.createdAt.toISOString().slice(0, 10),
      sinceLedger: 1,
      status: ({ succeeded: 'success', failed: 'failed', expired: 'dead', open: 'sent' } as const)[outcome],
      resultCode: outcome === 'succeeded' ? 'txSuccess' : outcome === 'failed' ? 'txFailed' : null,
      contractError: outcome === 'failed' ? 3506 : null,
      ledgerHash: isApplied ? transfer.outerHash : null,
      ledger: isApplied ? 1_000 + index : null,
      feeCharged,
      settledAt,
    }
  })
  for (let start = 0; start < rows.length; start += 500) {
    await db.insert(sponsoredTransfers).values(rows.slice(start, start + 500))
  }
  return rows.reduce((sum, { feeCharged }) => sum + (feeCharged ?? 0n), 0n)
}
