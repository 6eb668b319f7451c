import type { RefusalReason } from '#lib/sponsor/refusal-reason.ts'

/** The sequence number that the account has used last, beside that of a transfer with number 8. */
export interface PayerCase {
  name: string
  used: bigint | null
  reason?: RefusalReason
}

export const PAYER_CASES: readonly PayerCase[] = [
  { name: 'the next number', used: 7n },
  { name: 'a number that is used', used: 8n, reason: 'sequence' },
  { name: 'a number long used', used: 100n, reason: 'sequence' },
  { name: 'a number too far ahead', used: 6n, reason: 'sequence' },
  { name: 'no account', used: null, reason: 'no-account' },
]
