import type { TransferKind } from '#drizzle/schema/transfers.ts'
import type { RefusalReason } from '#lib/refusal/sponsor-refusal.ts'

interface RivalCase {
  name: string
  /** how many envelopes have joined the first one already */
  rivals: number
  given: { kind?: TransferKind; recipient?: string; sequenceNumber?: bigint; sponsor?: string }
  reason: RefusalReason
  /** the part of the message after the reason */
  detail: string
}

/** Envelopes that are refused while another transfer of their account is open. */
export const RIVAL_CASES: readonly RivalCase[] = [
  { name: 'a fourth envelope', rivals: 2, given: {}, reason: 'too-many-envelopes', detail: 'three transactions' },
  {
    name: 'an envelope to another recipient',
    rivals: 0,
    given: { recipient: 'another' },
    reason: 'other-recipient',
    detail: 'another recipient',
  },
  {
    name: 'another call to the same recipient',
    rivals: 0,
    given: { kind: 'revoke_spender' },
    reason: 'other-recipient',
    detail: 'another call',
  },
  {
    name: 'an envelope of another number',
    rivals: 1,
    given: { sequenceNumber: 9n },
    reason: 'another-open',
    detail: 'until 2026-05-01T12:01:40.000Z',
  },
  {
    name: 'an envelope that another sponsor has signed',
    rivals: 0,
    given: { sponsor: 'another sponsor' },
    reason: 'another-open',
    detail: 'until',
  },
]
