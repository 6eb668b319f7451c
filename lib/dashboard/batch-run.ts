import { and, desc, eq, gt, inArray, ne, sql } from 'drizzle-orm'
import { batchItems, batchJobs, type JobStatus, relayChannels } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { isSeenLately, RUN_PROBLEMS } from '#lib/relay/channel-state.ts'
import { OPEN_ITEM } from '#lib/relay/item-row.ts'
import { parseManifest } from '#lib/wallet/manifest.ts'
import { countOf } from './list.ts'

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
  const items = await countItems(db, job.id, now)
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
      const own = items.get(address) ?? NO_ITEMS
      const channel = channels.find((each) => each.address === address)
      const waitsFor = own.left === 0 ? '' : describeWait(own, channel, holders.has(address), now)
      return { address, liveUntilLedger, paid: own.paid, left: own.left, waitsFor }
    }),
  }
}

const NO_ITEMS = { paid: 0, left: 0, taken: 0, signed: 0, doubted: 0 }

/** Counts the paid and the unfinished items of a run by channel. */
async function countItems(db: Database, job: string, now: Date): Promise<Map<string | null, typeof NO_ITEMS>> {
  const { status, spender, doubtedUntil } = batchItems
  const isLeft = inArray(status, OPEN_ITEM)
  const rows = await db
    .select({
      spender,
      paid: countOf(eq(status, 'paid')),
      left: countOf(isLeft),
      taken: countOf(eq(status, 'taken')),
      signed: countOf(eq(status, 'signed')),
      doubted: countOf(sql`${isLeft} and ${gt(doubtedUntil, now)}`),
    })
    .from(batchItems)
    .where(eq(batchItems.job, job))
    .groupBy(spender)
  return new Map(rows.map((row) => [row.spender, row]))
}

/** The channels that an item of another job or run holds. */
async function findOtherHolders(db: Database, job: string): Promise<Set<string>> {
  const { address, itemJob } = relayChannels
  const rows = await db.select({ address }).from(relayChannels).where(ne(itemJob, job))
  return new Set(rows.map((row) => row.address))
}

function describeWait(
  { left, taken, signed, doubted }: typeof NO_ITEMS,
  channel: typeof relayChannels.$inferSelect | undefined,
  isHeld: boolean,
  now: Date,
): string {
  if (!channel || !isSeenLately(channel.seenAt, now)) return 'a relay with the key of this channel'
  if (signed > 0) return 'the ledger'
  if (taken > 0) return 'a proof'
  if (channel.paused) return 'an operator, who has paused the channel'
  if (channel.problem !== null && !RUN_PROBLEMS.includes(channel.problem)) {
    return `the channel, whose problem is: ${channel.problem}`
  }
  if (isHeld) return 'its turn: the channel pays another employer'
  return doubted === left ? 'a second look at the ledger, or another transfer' : 'a worker of the relay'
}
