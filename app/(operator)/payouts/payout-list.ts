import { payoutState, WHY_OVERDUE } from '#lib/dashboard/lateness.ts'
import { PAYOUT_FILTERS, type PayoutLine, readPayouts } from '#lib/dashboard/payouts.ts'
import type { ListFile } from '../csv-file.ts'
import { statusWord } from '../status.tsx'

/** Why a payout is not paid, if there is a reason. */
export function whyUnpaid(payout: PayoutLine, now: Date): string | null {
  return payoutState(payout, now) === 'overdue' ? WHY_OVERDUE : payout.meaning || payout.error
}

/** The payouts of one batch, or of all. */
export const PAYOUT_LIST: ListFile<typeof PAYOUT_FILTERS, PayoutLine> = {
  name: 'payouts',
  checks: PAYOUT_FILTERS,
  read: (db, filters) => readPayouts(db, filters),
  columns: [
    ['Created (UTC)', ({ createdAt }) => createdAt],
    ['Organisation', ({ organisation }) => organisation],
    ['Batch', ({ batch }) => batch],
    ['Contractor', ({ contractor }) => contractor],
    ['Status', (payout, now) => statusWord('payout', payoutState(payout, now))],
    ['Account', ({ address }) => address],
    ['Transaction', ({ ledgerHash }) => ledgerHash],
    ['Inner hash', ({ innerHash }) => innerHash],
    ['Paid (UTC)', ({ paidAt }) => paidAt],
    ['Why', whyUnpaid],
    ['Payout id', ({ id }) => id],
    ['Batch id', ({ batchId }) => batchId],
    ['Contractor id', ({ contractorId }) => contractorId],
  ],
}
