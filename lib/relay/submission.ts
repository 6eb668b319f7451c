import { eq } from 'drizzle-orm'
import type { ItemStatus } from '#drizzle/schema/relay.ts'
import { sponsoredTransfers } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { Refusal } from '#lib/http/refusal.ts'
import { type RefusalReason, SponsorRefusal } from '#lib/sponsor/refusal-reason.ts'
import { sponsorChannel } from '#lib/sponsor/transfer.ts'
import { confirmItem, type Item } from './items.ts'
import type { Relay } from './relay.ts'

/**
 * What has become of an item's transfer. `open`: it is not decided yet, so ask again. `refused`: the sponsor does not pay
 * for it, and nobody has seen it. `moved`: another worker has moved the item on.
 */
export type Submitted =
  | { kind: 'succeeded'; hash: string }
  | { kind: 'failed'; hash: string; code: string | undefined }
  | { kind: 'expired' }
  | { kind: 'unknown'; hash: string | undefined }
  | { kind: 'open' }
  | { kind: 'refused'; reason: RefusalReason; message: string }
  | { kind: 'moved' }

/**
 * Has the stored transfer of an item sponsored, as often as it takes: it is one and the same transfer each time.
 * @throws Refusal `unavailable`
 */
export async function submitItem(relay: Relay, item: Item): Promise<Submitted> {
  const { channel, signedXdr, quotaAccount } = item
  if (channel === null || signedXdr === null) throw new Error('a signed item has no transfer')
  const db = await relay.database()
  const confirm = (tx: Database) => confirmItem(tx, item, relay.now())
  try {
    const ending = await sponsorChannel(db, relay.sponsor, { channel, quotaAccount, confirm }, signedXdr)
    // A refusal by the network decides nothing: the transfer may still come until its time is over.
    if (ending === 'open' || ending === 'rejected') return { kind: 'open' }
    const { status, ledgerHash: hash, resultCode } = ending
    if (status === 'success' && hash) return { kind: 'succeeded', hash }
    if (status === 'failed' && hash) return { kind: 'failed', hash, code: resultCode ?? undefined }
    return { kind: 'expired' }
  } catch (error) {
    if (error instanceof SponsorRefusal) return { kind: 'refused', reason: error.reason, message: error.message }
    if (error instanceof Refusal && error.code === 'conflict') return { kind: 'moved' }
    throw error
  }
}

/** Whether the transfer of this inner hash, if the sponsor knows it at all, can no longer pay an item that ends as `next`. */
export async function isDecided(tx: Database, innerHash: string, next: ItemStatus): Promise<boolean> {
  if (next === 'unknown') return true
  const [transfer] = await tx
    .select({ status: sponsoredTransfers.status })
    .from(sponsoredTransfers)
    .where(eq(sponsoredTransfers.innerHash, innerHash))
  return !transfer || transfer.status === 'failed' || transfer.status === 'dead'
}
