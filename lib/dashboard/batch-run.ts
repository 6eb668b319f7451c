import { and, desc, eq, gt, inArray, ne, sql } from 'drizzle-orm'
import { union } from 'drizzle-orm/pg-core'
import { type JobStatus, relayChannels, relayJobs, relayLines } from '#drizzle/schema/relay.ts'
import { transfers } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { isSeenLately, RUN_PROBLEMS } from '#lib/relay/channel-state.ts'
import { IS_OPEN_LINE } from '#lib/transfers/line.ts'
import { parseManifest } from '#lib/wallet/manifest.ts'
import { PROBLEM_EXPLANATIONS } from './channels.ts'
import { IS_LEASED, IS_SENT } from './line-state.ts'
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
    .from(relayJobs)
    .where(eq(relayJobs.batch, batch))
    .orderBy(desc(relayJobs.createdAt))
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

const NO_ITEMS = { paid: 0, left: 0, preparing: 0, sent: 0, doubted: 0 }

/** Counts the paid and the unfinished items of a run by channel. */
async function countItems(db: Database, job: string, now: Date): Promise<Map<string | null, typeof NO_ITEMS>> {
  const { outcome, spender, due } = relayLines
  const rows = await db
    .select({
      spender,
      paid: countOf(eq(outcome, 'paid')),
      left: countOf(IS_OPEN_LINE),
      preparing: countOf(sql`${IS_OPEN_LINE} and ${IS_LEASED}`),
      sent: countOf(sql`${IS_OPEN_LINE} and ${IS_SENT}`),
      doubted: countOf(sql`${IS_OPEN_LINE} and ${gt(due, now)}`),
    })
    .from(relayLines)
    .where(eq(relayLines.job, job))
    .groupBy(spender)
  return new Map(rows.map((row) => [row.spender, row]))
}

/** The channels that pay or prepare a line of another job or run. */
async function findOtherHolders(db: Database, job: string): Promise<Set<string | null>> {
  const leased = db
    .select({ channel: relayLines.channel })
    .from(relayLines)
    .where(and(ne(relayLines.job, job), IS_LEASED))
  const sending = db
    .select({ channel: transfers.account })
    .from(transfers)
    .where(and(eq(transfers.status, 'open'), ne(transfers.lineJob, job)))
  return new Set((await union(leased, sending)).map((row) => row.channel))
}

function describeWait(
  { left, preparing, sent, doubted }: typeof NO_ITEMS,
  channel: typeof relayChannels.$inferSelect | undefined,
  isHeld: boolean,
  now: Date,
): string {
  if (!channel || !isSeenLately(channel.seenAt, now)) return 'a relay with the key of this channel'
  if (sent > 0) return 'the ledger'
  if (preparing > 0) return 'a proof'
  if (channel.paused) return 'an operator, who has paused the channel'
  if (channel.problem !== null && !RUN_PROBLEMS.includes(channel.problem)) {
    const { meaning, remedy } = PROBLEM_EXPLANATIONS[channel.problem]
    return `the channel. ${meaning}. ${remedy}`
  }
  if (isHeld) return 'its turn: the channel pays another employer'
  return doubted === left ? 'a second look at the ledger, or another transfer' : 'its host'
}
