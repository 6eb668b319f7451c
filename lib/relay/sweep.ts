import { and, eq, gt, inArray, lt, notInArray } from 'drizzle-orm'
import { batchItems, batchJobs, relayChannels } from '#drizzle/schema/relay.ts'
import { purgeUsedChallenges } from '#lib/auth/sep10/claim.ts'
import type { Database } from '#lib/db/connection.ts'
import { sweepRegistrations } from '#lib/directory/contractors/activation.ts'
import type { ConfidentialAccounts } from '#lib/directory/contractors/registration.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import type { Sponsor } from '#lib/sponsor/sponsor.ts'
import { findOpenTransfers } from '#lib/sponsor/transfer-record.ts'
import { failItem, returnItem } from './item-ending.ts'
import { forgetRelays } from './presence.ts'
import type { JobQueue } from './queue.ts'

/** What a sweep works with. What is undefined is not configured, and left out. */
export interface Sweeping {
  database(): Promise<Database>
  now(): Date
  sponsor: Sponsor | undefined
  registry: ConfidentialAccounts
  queue: JobQueue
}

/** What a sweep came upon; null for a part that failed. */
export interface Swept {
  /** open transfers that were looked after */
  transfers: number | null
  /** contractors that became ready */
  contractors: number | null
  /** jobs that were queued again, for whatever relay there is */
  jobs: number | null
  challenges: 'purged' | null
}

/** Does what nobody waits for any more. Each part stands alone: one that fails is logged, and tried at the next sweep. */
export async function sweep(given: Sweeping): Promise<Swept> {
  const { database, now, sponsor, registry, queue } = given
  return {
    transfers: await part('transfers', async () => {
      const open = sponsor ? await findOpenTransfers(await database()) : []
      await sponsor?.settlement.lookAfter(open)
      return open.length
    }),
    contractors: await part('contractors', async () =>
      registry ? await sweepRegistrations(await database(), registry, now()) : 0,
    ),
    jobs: await part('jobs', async () => await resumeJobs(await database(), queue, now())),
    challenges: await part('challenges', async () => {
      await purgeUsedChallenges(await database(), now())
      await forgetRelays(await database())
      return 'purged' as const
    }),
  }
}

async function part<Result>(name: string, work: () => Promise<Result>): Promise<Result | null> {
  try {
    return await work()
  } catch (error) {
    log('error', 'sweep', { part: name, failure: describeFailure(error) })
    return null
  }
}

/** A job that has run so long (ms) is queued again: whoever took its message may be gone. */
const OVERDUE = 60_000
/** An item that has waited so long (ms) for a channel to be fit, or for its transfer to be made, is given up. */
const HOPELESS = 3_600_000
/** A channel that nobody has had the key of for so long (ms) will not finish what it has begun. */
const FORSAKEN = 600_000

/** Queues again what still runs, frees what channels that are gone have begun, and gives up what has waited too long. */
async function resumeJobs(db: Database, queue: JobQueue, now: Date): Promise<number> {
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
