import { Refusal } from '#lib/refusal/refusal.ts'
import { decodeInner } from './policy.ts'
import type { LinePayment, RecordingTerms } from './record.ts'
import type { LedgerCheck } from './simulation.ts'
import { submit, type TransferContext } from './submit.ts'

/** A transfer of a relay's channel account, which pays a line of a user's job or run. */
export interface ChannelTransfer {
  /** the payer, G-address */
  channel: string
  /** the account whose quota the transfer counts against */
  quotaAccount: string
  /** the transfer that the channel has signed, base64 XDR */
  signedXDR: string
  /** undefined for a payment that was found on the ledger, and whose line was lost */
  line: LinePayment | undefined
  /** the ledger's state that the caller has just read for this transaction */
  checked?: LedgerCheck | undefined
  /** set if the channel pays from the escrow of a delegation, with the payout that it pays, if that is recorded */
  delegated?: Pick<RecordingTerms, 'payoutId'>
  onFound?: RecordingTerms['onFound']
}

/** The call that a channel may make when it pays from an escrow. */
const DELEGATED = {
  functions: new Set(['confidential_transfer_from']),
  channels: new Set<string>(),
  auditorId: 0,
  marginLedgers: 0,
}

/**
 * The relay's only way to the sponsor: records the transfer that a channel has signed, and begins to submit it. The policy is
 * that of a client's transfer, except that the channel may pay although the service controls it. Resolves to the transfer's id;
 * from then on any process finds out how it ends, and ends its line with it. Nothing is recorded if `claim` of the line throws.
 * @throws SponsorRefusal if the sponsor doesn't pay; Refusal `unavailable` if the ledger or the database is unreachable;
 *   and the errors of `claim`
 */
export async function sponsorChannel(
  context: Omit<TransferContext, 'waitMs'>,
  { channel, signedXDR, quotaAccount, line, checked, delegated, onFound }: ChannelTransfer,
): Promise<string> {
  const inner = decodeInner(signedXDR, context.tracker.network.passphrase)
  if (inner.source !== channel) throw new Refusal('source-mismatch', 'transaction source is not the channel')
  const terms = { quotaAccount, line, onFound, ...(delegated && { ...delegated, calls: DELEGATED }) }
  const { transfer } = await submit({ ...context, waitMs: 0 }, inner, { terms, channel, checked })
  if (transfer === undefined) throw new Error('a channel’s transfer was not recorded')
  return transfer
}
