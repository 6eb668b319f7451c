import type { UnfitReason } from '#lib/directory/payouts/unfit.ts'
import type { RefusalReason } from '#lib/refusal/sponsor-refusal.ts'

/** Payouts that a client may name but that do not fit its transfer, and why. */
export const CLAIM_CASES = (
  [
    ['unknown', 'unknown'],
    ['no id', 'unknown'],
    ['an empty string', 'unknown'],
    ['of another organisation', 'unknown'],
    ['of a draft', 'draft'],
    ['for another address', 'other-recipient'],
    ['pending', 'busy'],
    ['paid', 'already-paid'],
    ['canceled', 'canceled'],
  ] as const satisfies [string, UnfitReason][]
).map(([name, why]) => ({ name, why, reason: 'payout' as const satisfies RefusalReason }))
