import { and, eq, gt, inArray, lt, notInArray } from 'drizzle-orm'
import { batchItems, batchJobs, relayChannels } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { failItem, returnItem } from './item-ending.ts'
import { forgetRelays } from './presence.ts'
import type { JobQueue } from './queue.ts'

/** A job that has run so long (ms) is queued again: whoever took its message may be gone. */
const OVERDUE = 60_000
/** An item that has waited so long (ms) for a channel to be fit, or for its transfer to be made, is given up. */
const HOPELESS = 3_600_000
/** A channel that nobody has had the key of for so long (ms) will not finish what it has begun. */
const FORSAKEN = 600_000

/**
 * Queues again what still runs, frees what channels that are gone have begun, and gives up what has waited too long.
 * Resolves to how many jobs were queued again.
 */
export async function resumeJobs(db: Database, queue: JobQueue, now: Date): Promise<number> {
  await forgetRelays(db)
  const ago = (ms: number) => new Date(now.getTime() - ms)
  const present = db
    .select({ address: relayChannels.address })
    .from(relayChannels)
    .where(gt(relayChannels.seenAt, ago(FORSAKEN)))
  const forsaken = await db
    .select()
    .from(batchItems)
    .where(and(inArray(batchItems.status, ['taken', 'signed']), notInArray(batchItems.channel, present)))
  // One whose transfer can still come is not returned; that transfer is settled above, and then it is.
  for (const item of forsaken) await returnItem(db, item)
  const hopeless = await db
    .select()
    .from(batchItems)
    .where(and(inArray(batchItems.status, ['queued', 'taken']), lt(batchItems.queuedAt, ago(HOPELESS))))
  for (const item of hopeless) await failItem(db, item, 'no channel could pay it in time', now)
  const overdue = await db
    .select({ id: batchJobs.id })
    .from(batchJobs)
    .where(and(eq(batchJobs.status, 'running'), lt(batchJobs.createdAt, ago(OVERDUE))))
  if (overdue.length > 0) await queue.open()
  for (const { id } of overdue) await queue.send(db, id)
  return overdue.length
}
