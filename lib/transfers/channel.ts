import type { Database } from '#lib/db/connection.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { decodeInner, submit, type TransferContext } from './submit.ts'

/** A transfer of a relay's channel account, which pays an item of a user's batch job. */
export interface ChannelTransfer {
  /** the payer, G-address */
  channel: string
  /** the account whose quota the transfer counts against */
  quotaAccount: string
  /** the transfer that the channel has signed, base64 XDR */
  signedXDR: string
  /** Runs in the SQL transaction that records the transfer, and throws if it is no longer the one to pay the item. */
  confirm(tx: Database): Promise<void>
}

/**
 * How a channel's transfer stands. `open`: submit the same transfer again, at any time. `refused`: the network refuses
 * it now, with a code; it may still apply until it expires, so submit it again. The others are final, and `hash` is
 * what stands on the ledger. With `unknown` nothing can be learned any more; its `hash` is the one under which it was
 * sent.
 */
type ChannelOutcome =
  | { status: 'open' }
  | { status: 'refused'; resultCode: string }
  | { status: 'succeeded'; hash: string }
  | { status: 'failed'; hash: string; resultCode: string; contractError: number | null }
  | { status: 'expired' }
  | { status: 'unknown'; hash: string }

/**
 * The relay's only way to the sponsor: submits the transfer that a channel has signed, waits at most `waitMs` for its end, and resolves to how it stands. The policy is that of a client's transfer, except that the
 * channel may pay, although the service controls it. To go on waiting, or after a restart, call it again with the very
 * same `signedXDR`: the transfer is recorded and paid for once. Nothing is recorded if `confirm` throws.
 * @throws SponsorRefusal when the sponsor does not pay; Refusal `unavailable` when ledger or database cannot be
 *   reached; and the errors of `confirm`
 */
export async function sponsorChannel(
  context: TransferContext,
  { channel, signedXDR, quotaAccount, confirm }: ChannelTransfer,
): Promise<ChannelOutcome> {
  const inner = decodeInner(signedXDR, context.tracker.network.passphrase)
  if (inner.source !== channel) throw new Refusal('source-mismatch', 'transaction source is not the channel')
  const { outcome, hash: sent } = await submit(context, inner, { terms: { quotaAccount, confirm }, channel })
  if (outcome.kind === 'open') return { status: 'open' }
  if (outcome.kind === 'refused') return { status: 'refused', resultCode: outcome.resultCode }
  const { status, hash, applied, resultCode, contractError } = outcome.transfer
  // Another transaction has used the sequence number: this transfer will never apply.
  if (status === 'succeeded' && applied !== inner.hashHex) return { status: 'expired' }
  if (status === 'succeeded' && hash !== null) return { status, hash }
  if (status === 'failed' && hash !== null) return { status, hash, resultCode: resultCode ?? '', contractError }
  return status === 'expired' ? { status } : { status: 'unknown', hash: sent }
}
