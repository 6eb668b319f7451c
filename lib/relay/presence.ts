import { and, gt, inArray, like, lte, sql } from 'drizzle-orm'
import { batchItems, type ItemStatus } from '#drizzle/schema/relay.ts'
import { leases } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { type Lease, releaseLease, renewLease, takeLease } from '#lib/db/leases.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import type { Relay } from './relay.ts'

/** A relay that runs holds a lease of its own name, so that the others can share the channels with it. */
const PREFIX = 'relay '
/** Seconds that a relay counts as running after it was last heard of. */
const HEARD_OF = 10

/** The name of a relay, from anything that no other has. */
export const relayName = (unique: string): string => `${PREFIX}${unique}`

/** Says that this relay runs. Resolves to what the next call is to be given. */
export async function sayPresent(db: Database, name: string, lease: Lease | undefined): Promise<Lease | undefined> {
  if (lease && (await renewLease(db, lease, HEARD_OF))) return lease
  return await takeLease(db, name, { holder: name, seconds: HEARD_OF })
}

/** The last word of a relay that ends: the others need not wait to find out. */
export async function sayGone({ database }: Relay, lease: Lease | undefined): Promise<void> {
  try {
    if (lease) await releaseLease(await database(), lease)
  } catch (error) {
    log('info', 'relay ends', { failure: describeFailure(error) })
  }
}

/** How many relays run on this database. */
export async function countRelays(db: Database): Promise<number> {
  return await db.$count(leases, and(like(leases.account, `${PREFIX}%`), gt(leases.until, sql`clock_timestamp()`)))
}

/** Forgets relays that have long been gone. */
export async function forgetRelays(db: Database): Promise<void> {
  const long = sql`clock_timestamp() - interval '1 hour'`
  await db.delete(leases).where(and(like(leases.account, `${PREFIX}%`), lte(leases.until, long)))
}

/** Whether any item of any job is still to be paid. Two questions, for each has an index of its own. */
export async function isThereWork(db: Database): Promise<boolean> {
  const some = (statuses: ItemStatus[]) =>
    db.select({ job: batchItems.job }).from(batchItems).where(inArray(batchItems.status, statuses)).limit(1)
  return (await some(['queued'])).length > 0 || (await some(['taken', 'signed'])).length > 0
}
