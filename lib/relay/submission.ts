import type { ItemStatus } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { Refusal } from '#lib/http/refusal.ts'
import { type RefusalReason, SponsorRefusal } from '#lib/sponsor/refusal-reason.ts'
import { sponsorChannel } from '#lib/sponsor/transfer.ts'
import { findTransferOfHash } from '#lib/submission/transfers.ts'
import { confirmItem, type Item } from './items.ts'
import type { Relay } from './relay.ts'

/**
 * What has become of an item's transfer. `open`: it is not decided yet, so ask again. `refused`: the sponsor does not pay
 * for it, and it has left this service at no time. `moved`: another worker has moved the item on.
 */
export type Submitted =
  | { kind: 'succeeded'; hash: string }
  | { kind: 'failed'; hash: string; code: string | undefined }
  | { kind: 'expired' }
  | { kind: 'unknown'; hash: string }
  | { kind: 'open' }
  | { kind: 'refused'; reason: RefusalReason; message: string }
  | { kind: 'moved' }

/** How long a step waits for the ledger (ms) before its worker looks whether it may go on. */
const PATIENCE_MS = 2_000

/**
 * Has the stored transfer of an item sponsored, as often as it takes: it is one and the same transfer each time.
 * @throws Refusal `unavailable`
 */
export async function submitItem(relay: Relay, item: Item): Promise<Submitted> {
  const { channel, signedXdr, quotaAccount } = item
  if (channel === null || signedXdr === null) throw new Error('a signed item has no transfer')
  const db = await relay.database()
  const confirm = (tx: Database) => confirmItem(tx, item, relay.now())
  const { sponsor } = relay
  const context = { db, sponsor, submission: sponsor.submission, patience: PATIENCE_MS }
  try {
    const outcome = await sponsorChannel(context, { channel, quotaAccount, signedXDR: signedXdr, confirm })
    if (outcome.status === 'succeeded') return { kind: 'succeeded', hash: outcome.hash }
    if (outcome.status === 'failed') return { kind: 'failed', hash: outcome.hash, code: outcome.resultCode }
    if (outcome.status === 'expired') return { kind: 'expired' }
    if (outcome.status === 'unknown') return { kind: 'unknown', hash: outcome.hash }
    // A refusal by the network decides nothing: the transfer may still come until its time is over.
    return { kind: 'open' }
  } catch (error) {
    if (error instanceof SponsorRefusal) return { kind: 'refused', reason: error.reason, message: error.message }
    if (error instanceof Refusal && error.code === 'conflict') return { kind: 'moved' }
    throw error
  }
}

/** Whether the transfer of this inner hash, if the sponsor knows it at all, can no longer pay an item that ends as `next`. */
export async function isDecided(tx: Database, innerHash: string, next: ItemStatus): Promise<boolean> {
  if (next === 'unknown') return true
  const transfer = (await findTransferOfHash(tx, innerHash))?.transfer
  if (!transfer) return true
  const isReplaced = transfer.status === 'succeeded' && transfer.applied !== innerHash
  return isReplaced || transfer.status === 'failed' || transfer.status === 'expired'
}
