import { and, eq } from 'drizzle-orm'
import { batches, payouts } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
import { isId } from '../ids.ts'
import type { PayoutClaim } from './claims.ts'

/** Why a payout that a client names does not fit its transfer, and what to do. */
export const UNFIT = {
  unknown:
    'the organisation of the sending account has no such payout: sign in with the account that pays, or read GET /payouts',
  'other-recipient': 'the payout is to another address: build the transfer to the `address` of the payout',
  draft: 'its batch is a draft: lock it with POST /batches/{id}/ready',
  'already-paid': 'the payout is paid by `hash`: do not pay it again',
  canceled: 'the payout is canceled: instruct it in another batch',
  undecided: 'it is not known whether the payout was paid: ask the payee, and cancel it with DELETE /payouts/{id}',
  busy: 'another transfer or a run is paying the payout: wait for it, or resume the batch’s run',
  newer: 'the ledger applied the transaction before the payout was created: pay the payout with another transfer',
  'other-payout': 'the transaction pays `payoutId`: build another one for this payout',
} as const
export type UnfitReason = keyof typeof UNFIT

/** Why `claimPayout` found that the named payout does not fit. */
export async function explainUnfit(
  db: Database,
  {
    organisation,
    recipient,
    payoutId,
    createdBefore,
  }: Pick<PayoutClaim, 'recipient' | 'createdBefore'> & { organisation: string | null; payoutId: string },
): Promise<{ reason: UnfitReason; hash?: string }> {
  const { address, status, error, txHash, createdAt } = payouts
  if (organisation === null || !isId(payoutId)) return { reason: 'unknown' }
  const [payout] = await db
    .select({ address, status, error, txHash, createdAt, batch: batches.status })
    .from(payouts)
    .innerJoin(batches, eq(batches.id, payouts.batch))
    .where(and(eq(payouts.id, payoutId), eq(payouts.organisation, organisation)))
  if (!payout) return { reason: 'unknown' }
  if (payout.address !== recipient) return { reason: 'other-recipient' }
  if (payout.status === 'paid') return { reason: 'already-paid', hash: payout.txHash ?? '' }
  if (payout.status === 'canceled') return { reason: 'canceled' }
  if (payout.status === 'draft' || payout.batch === 'draft') return { reason: 'draft' }
  if (payout.status === 'pending' && payout.error !== null) return { reason: 'undecided' }
  if (createdBefore && payout.createdAt >= createdBefore) return { reason: 'newer' }
  return { reason: 'busy' }
}
