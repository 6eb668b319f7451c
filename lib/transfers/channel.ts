import type { Database } from '#lib/db/connection.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { decodeInner } from './policy.ts'
import type { RecordingTerms } from './record.ts'
import type { LedgerCheck } from './simulation.ts'
import { submit, type TransferContext } from './submit.ts'

/** A transfer of a relay's channel account, which pays an item of a user's batch job. */
export interface ChannelTransfer {
  /** the payer, G-address */
  channel: string
  /** the account whose quota the transfer counts against */
  quotaAccount: string
  /** the transfer that the channel has signed, base64 XDR */
  signedXDR: string
  /** Runs in the SQL transaction that records the transfer, and throws if this transfer may no longer pay the item. */
  confirm(tx: Database): Promise<void>
  /** the ledger's state that the caller has just read for this transaction */
  checked?: LedgerCheck | undefined
  /** set if the channel pays from the escrow of a delegation, with the payout that it pays, if that is recorded */
  delegated?: Pick<RecordingTerms, 'payoutId'>
}

/**
 * The state of a channel's transfer. `open`: submit the same transfer again, at any time. `refused`: the network rejects
 * it now, with a code; it may still be applied until it expires, so submit it again. The others are final, and `hash` is
 * the applied hash. With `unknown` the outcome can no longer be determined; its `hash` is the submitted one.
 */
type ChannelOutcome =
  | { status: 'open' }
  | { status: 'refused'; resultCode: string }
  | { status: 'succeeded'; hash: string }
  | { status: 'failed'; hash: string; resultCode: string; contractError: number | null }
  | { status: 'expired' }
  | { status: 'unknown'; hash: string }

/** The call that a channel may make when it pays from an escrow. */
const DELEGATED = {
  functions: new Set(['confidential_transfer_from']),
  channels: new Set<string>(),
  auditorId: 0,
  marginLedgers: 0,
}

/**
 * The relay's only way to the sponsor: submits the transfer that a channel signed, waits at most `waitMs` for its
 * outcome, and resolves to its state. The policy is that of a client's transfer, except that the channel may pay although
 * the service controls it. To continue waiting, or after a restart, call it again with exactly the same `signedXDR`: the
 * transfer is recorded and paid for once. Nothing is recorded if `confirm` throws.
 * @throws SponsorRefusal if the sponsor doesn't pay; Refusal `unavailable` if the ledger or the database is unreachable;
 *   and the errors of `confirm`
 */
export async function sponsorChannel(
  context: TransferContext,
  { channel, signedXDR, quotaAccount, confirm, checked, delegated }: ChannelTransfer,
): Promise<ChannelOutcome> {
  const inner = decodeInner(signedXDR, context.tracker.network.passphrase)
  if (inner.source !== channel) throw new Refusal('source-mismatch', 'transaction source is not the channel')
  const { outcome, hash: sent } = await submit(context, inner, {
    terms: { quotaAccount, confirm, ...(delegated && { ...delegated, calls: DELEGATED }) },
    channel,
    checked,
  })
  if (outcome.kind === 'open') return { status: 'open' }
  if (outcome.kind === 'refused') return { status: 'refused', resultCode: outcome.resultCode }
  const { status, hash, applied, resultCode, contractError } = outcome.transfer
  // Another transaction has used the sequence number: this transfer will never apply.
  if (status === 'succeeded' && applied !== inner.hashHex) return { status: 'expired' }
  if (status === 'succeeded' && hash !== null) return { status, hash }
  if (status === 'failed' && hash !== null) return { status, hash, resultCode: resultCode ?? '', contractError }
  return status === 'expired' ? { status } : { status: 'unknown', hash: sent }
}
