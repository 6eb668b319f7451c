import type { Transfer } from '#drizzle/schema/transfers.ts'
import { type Actor, recordAudit } from '#lib/db/audit-log.ts'
import type { Database } from '#lib/db/connection.ts'
import { type PayoutOutcome, settlePayout } from '#lib/directory/payouts/settlement.ts'
import { release } from './quota.ts'

const ACTOR: Actor = { kind: 'service', sub: 'settlement' }

/**
 * Gives the payout of a settled transfer its outcome, and turns what the transfer reserved into what it cost. Runs in the
 * SQL transaction that settles the transfer.
 */
export async function bookTransfer(tx: Database, settled: Transfer, now: Date): Promise<void> {
  const { id, applied, account, quotaAccount, quotaDay, sponsor, bid, payout, status, organisation } = settled
  await recordAudit(tx, now, {
    organisation: organisation ?? undefined,
    actor: ACTOR,
    action: 'transfer.settled',
    subject: { kind: 'transfer', id: applied ?? id },
    detail: { transfer: id, status },
  })
  if (payout) await settlePayout(tx, { payout, transfer: id }, outcomeOf(settled), now)
  if (sponsor === null) return
  // Of an unknown end the ledger may have charged the whole bid.
  const charged = status === 'unknown' ? bid : (settled.feeCharged ?? 0n)
  await release(tx, { account: quotaAccount ?? account, day: quotaDay, sponsor, bid }, charged)
}

function outcomeOf({ status, hash, resultCode, contractError }: Transfer): PayoutOutcome {
  if (status === 'succeeded' && hash) return { status: 'paid', txHash: hash }
  if (status === 'expired') return { status: 'failed', error: 'the transfer expired before it reached the ledger' }
  if (status === 'unknown') {
    return {
      status: 'pending',
      error: 'the history of the ledger no longer shows whether the transfer was paid: ask the payee, then cancel it',
    }
  }
  const contract = contractError === null ? '' : `, contract error ${contractError}`
  return { status: 'failed', error: `the transfer failed on the ledger: ${resultCode}${contract}` }
}
