import type { RefusalReason } from '#lib/refusal/sponsor-refusal.ts'

/** Payouts that a client may name but that do not fit its transfer. */
export const CLAIM_CASES = (
  [
    'unknown',
    'no id',
    'an empty string',
    'of another organisation',
    'of a draft',
    'for another address',
    'pending',
    'paid',
    'canceled',
  ] as const
).map((name) => ({ name, reason: 'payout' as const satisfies RefusalReason }))
