import { z } from 'zod'
import type { Session } from '#lib/auth/session.ts'
import type { Database } from '#lib/db/connection.ts'
import { Refusal } from '#lib/http/refusal.ts'
import { accept, type Terms } from './acceptance.ts'
import { decodeInner, type InnerTransaction } from './inner-transaction.ts'
import type { Ending } from './pending.ts'
import type { Sponsor } from './sponsor.ts'
import { findTransfer } from './transfer-record.ts'

/** `hash` (64 hex digits) stands on the ledger as a success. */
export interface TransferResult {
  hash: string
  status: 'SUCCESS'
}

/**
 * Whose transfer this is, before a body is read: only the holder of a ledger account may be sponsored.
 * @throws Refusal `not-wired`
 */
export function requirePayer(session: Session): string {
  if (session.kind === 'ledger') return session.sub
  throw new Refusal('wallet-required', 'transfers need a wallet session')
}

/** What a client sends. */
export const transferRequest = z.object(
  {
    signedXDR: z
      .string('signedXDR required')
      .min(1, 'signedXDR required')
      .meta({ description: 'the signed inner transaction, base64 XDR' }),
    payoutId: z.string('payoutId must be a string').optional().meta({
      description: 'the payout that the transfer pays; without it, the service finds one that fits',
      'x-extension': true,
    }),
  },
  'signedXDR required',
)
export type TransferRequest = z.output<typeof transferRequest>

/**
 * Pays the network fee of `signedXDR`, the confidential transfer that `payer` has built and signed, and waits for it.
 *
 * The same signed transaction is the same request, however often and wherever it arrives: it is recorded, and paid
 * for, once, and everybody gets what the ledger says.
 * @throws Refusal `malformed`, `forbidden`, `refused`; `failed` when it failed, died, or is still open: then the same
 *   signed transaction may safely be sent again
 */
export async function sponsorTransfer(
  db: Database,
  sponsor: Sponsor,
  payer: string,
  { signedXDR, payoutId }: TransferRequest,
): Promise<TransferResult> {
  const inner = decodeInner(signedXDR, sponsor.network.passphrase)
  if (inner.source !== payer) {
    throw new Refusal('source-mismatch', 'transaction source is not your session account')
  }
  return presentEnding(await pay(db, sponsor, inner, payoutId === undefined ? {} : { payoutId }))
}

/** A channel account of the relay, which pays an item of somebody's batch job. */
export interface ChannelCaller {
  /** the payer, G-address */
  channel: string
  /** whose quota the transfer counts against */
  quotaAccount: string
  /** Runs in the SQL transaction that records the transfer, and throws if it is no longer the one to pay the item. */
  confirm(tx: Database): Promise<void>
}

/**
 * The same for the relay's own transfers, under the same policy; only the channel itself leaves the set of addresses
 * that may not pay. The caller learns how it ended, and may ask again with the same signed transaction.
 * @throws Refusal `malformed`, `forbidden`, `refused`, `unavailable`
 */
export async function sponsorChannel(
  db: Database,
  sponsor: Sponsor,
  { channel, quotaAccount, confirm }: ChannelCaller,
  signedXDR: string,
): Promise<Ending> {
  const inner = decodeInner(signedXDR, sponsor.network.passphrase)
  if (inner.source !== channel) throw new Refusal('forbidden', 'transaction source is not the channel')
  return await pay(db, sponsor, inner, { channel, quotaAccount, confirm })
}

async function pay(db: Database, sponsor: Sponsor, inner: InnerTransaction, terms: Terms): Promise<Ending> {
  const earlier = await findTransfer(db, inner.hashHex)
  const accepted = earlier ? { record: earlier, isNew: false } : await accept(db, sponsor, inner, terms)
  return await sponsor.settlement.follow(accepted.record, { isNew: accepted.isNew, patience: sponsor.patience })
}

function presentEnding(ending: Ending): TransferResult {
  if (typeof ending === 'object' && ending.status === 'success' && ending.ledgerHash) {
    return { hash: ending.ledgerHash, status: 'SUCCESS' }
  }
  throw new Refusal('failed', 'transfer failed')
}
