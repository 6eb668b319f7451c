import { and, desc, eq, inArray, ne } from 'drizzle-orm'
import { batchItems, batchJobs, type JobStatus, relayChannels } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { isSeenLately, RUN_PROBLEMS } from '#lib/relay/channel-state.ts'
import { type Item, isOpen } from '#lib/relay/item-row.ts'
import { parseManifest } from '#lib/wallet/manifest.ts'

/** A channel that pays payouts of a run. */
export interface RunChannelLine {
  address: string
  /** the last ledger of the employer's delegation */
  liveUntilLedger: number
  paid: number
  /** payouts that it has yet to pay */
  left: number
  /** what it waits for, if payouts are left */
  waitsFor: string
}

/** How the relay pays a batch. Amounts are sealed to the relay, and are not read. */
export interface BatchRun {
  status: JobStatus
  createdAt: Date
  endedAt: Date | null
  error: string | null
  /** the account whose delegations pay */
  account: string
  channels: RunChannelLine[]
}

/** The newest run of a batch; undefined if its payouts are only paid by the client. */
export async function findBatchRun(db: Database, batch: string, now: Date): Promise<BatchRun | undefined> {
  const [job] = await db
    .select()
    .from(batchJobs)
    .where(eq(batchJobs.batch, batch))
    .orderBy(desc(batchJobs.createdAt))
    .limit(1)
  if (!job) return undefined
  const manifest = parseManifest(job.manifest ?? '')
  const { status, spender, doubtedUntil } = batchItems
  const items = await db.select({ status, spender, doubtedUntil }).from(batchItems).where(eq(batchItems.job, job.id))
  const addresses = manifest?.delegations.map(({ channel }) => channel) ?? []
  const channels = await db
    .select()
    .from(relayChannels)
    .where(and(eq(relayChannels.token, manifest?.token ?? ''), inArray(relayChannels.address, addresses)))
  const holders = await findOtherHolders(db, job.id)
  return {
    status: job.status,
    createdAt: job.createdAt,
    endedAt: job.endedAt,
    error: job.error,
    account: job.userSub,
    channels: (manifest?.delegations ?? []).map(({ channel: address, liveUntilLedger }) => {
      const own = items.filter((item) => item.spender === address)
      const left = own.filter(isOpen)
      const channel = channels.find((each) => each.address === address)
      const waitsFor = left.length === 0 ? '' : describeWait(left, channel, holders.has(address), now)
      return {
        address,
        liveUntilLedger,
        paid: own.filter((item) => item.status === 'paid').length,
        left: left.length,
        waitsFor,
      }
    }),
  }
}

/** The channels that an item of another job or run holds. */
async function findOtherHolders(db: Database, job: string): Promise<Set<string>> {
  const { address, itemJob } = relayChannels
  const rows = await db.select({ address }).from(relayChannels).where(ne(itemJob, job))
  return new Set(rows.map((row) => row.address))
}

function describeWait(
  left: readonly Pick<Item, 'status' | 'doubtedUntil'>[],
  channel: typeof relayChannels.$inferSelect | undefined,
  isHeld: boolean,
  now: Date,
): string {
  if (!channel || !isSeenLately(channel.seenAt, now)) return 'a relay with the key of this channel'
  if (left.some(({ status }) => status === 'signed')) return 'the ledger'
  if (left.some(({ status }) => status === 'taken')) return 'a proof'
  if (channel.paused) return 'an operator, who has paused the channel'
  if (channel.problem !== null && !RUN_PROBLEMS.includes(channel.problem)) {
    return `the channel, whose problem is: ${channel.problem}`
  }
  if (isHeld) return 'its turn: the channel pays another employer'
  const isPaused = left.every(({ doubtedUntil }) => doubtedUntil !== null && doubtedUntil > now)
  return isPaused ? 'a second look at the ledger, or another transfer' : 'a worker of the relay'
}
