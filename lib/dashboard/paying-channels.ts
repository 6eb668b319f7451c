import { and, desc, eq, gt, sql } from 'drizzle-orm'
import { relayJobs, relayLines } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { RUN_PROBLEMS } from '#lib/relay/channel-state.ts'
import { IS_OPEN_LINE } from '#lib/transfers/line.ts'
import { parseManifest } from '#lib/wallet/manifest.ts'
import { type ChannelLine, listChannels, PROBLEM_EXPLANATIONS } from './channels.ts'
import type { JobSummary } from './jobs.ts'
import { IS_LEASED, IS_SENT } from './line-state.ts'
import { countOf } from './list.ts'

/** How the relay pays a batch. Amounts are sealed to the relay, and are not read. */
export type BatchRun = NonNullable<Awaited<ReturnType<typeof findBatchRun>>>

/** The newest run of a batch; undefined if its payouts are only paid by the client. */
export async function findBatchRun(db: Database, batch: string, now: Date) {
  const [job] = await db
    .select()
    .from(relayJobs)
    .where(eq(relayJobs.batch, batch))
    .orderBy(desc(relayJobs.createdAt))
    .limit(1)
  if (!job) return undefined
  const manifest = parseManifest(job.manifest ?? '')
  const items = await countItems(db, job.id, now)
  const channels = await listChannels(db, manifest?.token ?? '', now)
  const { status, createdAt } = job
  return {
    status,
    createdAt,
    /** the account whose delegations pay */
    account: job.userSub,
    channels: (manifest?.delegations ?? []).map(({ channel: address, liveUntilLedger }) => {
      const own = items.get(address) ?? NO_ITEMS
      const channel = channels.find((each) => each.address === address)
      const waitsFor = own.left === 0 ? '' : describeWait({ job: job.id, isRun: true }, channel, own)
      return {
        address,
        /** the last ledger of the employer's delegation */
        liveUntilLedger,
        paid: own.paid,
        /** payouts that it has yet to pay */
        left: own.left,
        waitsFor,
      }
    }),
  }
}

const NO_ITEMS = { paid: 0, left: 0, doubted: 0, short: 0 }

/** Counts the paid and the unfinished items of a run by channel. */
async function countItems(db: Database, job: string, now: Date): Promise<Map<string | null, typeof NO_ITEMS>> {
  const { outcome, spender, due } = relayLines
  const rows = await db
    .select({
      spender,
      paid: countOf(eq(outcome, 'paid')),
      left: countOf(IS_OPEN_LINE),
      doubted: countOf(sql`${IS_OPEN_LINE} and ${gt(due, now)}`),
    })
    .from(relayLines)
    .where(eq(relayLines.job, job))
    .groupBy(spender)
  return new Map(rows.map(({ spender, ...counts }) => [spender, { ...NO_ITEMS, ...counts }]))
}

/**
 * Finds the channels that may still pay a job or a run; none once it has ended.
 * @param token whose channels pay jobs; a run names its own
 */
export async function findJobChannels(
  db: Database,
  { id, status, batch }: Pick<JobSummary, 'id' | 'status' | 'batch'>,
  token: string | undefined,
  now: Date,
): Promise<readonly ChannelWait[]> {
  if (status !== 'running') return []
  // The newest run of the batch: there is no other before this one has ended.
  if (batch !== null) return (await findBatchRun(db, batch, now))?.channels ?? []
  return token === undefined ? [] : await findPayingChannels(db, { job: id, token }, now)
}

/** Any channel may pay any line of a job, which has at most ten. */
async function findPayingChannels(
  db: Database,
  { job, token }: { job: string; token: string },
  now: Date,
): Promise<ChannelWait[]> {
  const { due, unable } = relayLines
  const lines = await db
    .select({ due, unable, isBusy: sql<boolean>`${IS_SENT} or ${IS_LEASED}` })
    .from(relayLines)
    .where(and(eq(relayLines.job, job), IS_OPEN_LINE))
  const waiting = lines.filter(({ isBusy }) => !isBusy)
  const channels = (await listChannels(db, token, now)).filter(({ isRetired }) => !isRetired)
  return channels.map((channel) => {
    const { address } = channel
    const open = {
      left: waiting.length,
      doubted: waiting.filter((line) => line.due > now).length,
      short: waiting.filter((line) => line.unable.includes(address)).length,
    }
    const isIdle = open.left === 0 && channel.job !== job
    return { address, waitsFor: isIdle ? '' : describeWait({ job, isRun: false }, channel, open) }
  })
}

/** A channel that may pay lines of a job or a run. */
interface ChannelWait {
  address: string
  /** what it waits for, or lacks; empty if no line is left for it */
  waitsFor: string
}

/** The unfinished lines that a channel may pay. */
interface OpenLines {
  left: number
  /** lines that a relay looks at again later */
  doubted: number
  /** lines that cost more than the channel’s balance; 0 for a run, which is paid from escrow */
  short: number
}

/** What a channel waits for, or lacks, before it pays the next line of a job or a run. Undefined is one without a row. */
function describeWait(
  { job, isRun }: { job: string; isRun: boolean },
  channel: ChannelLine | undefined,
  { left, doubted, short }: OpenLines,
): string {
  if (channel?.isRetired) return 'a new run: an operator has retired this channel'
  if (!channel?.isRunning) return 'a relay with the key of this channel'
  if (channel.job === job) return channel.isSending ? 'the ledger' : 'a proof'
  if (channel.isHalted) return 'the end of the stop: payments are stopped, see the overview'
  if (channel.isPaused) return 'an operator, who has paused the channel'
  const { problem } = channel
  if (problem !== null && !(isRun && RUN_PROBLEMS.includes(problem))) {
    const { meaning, remedy } = PROBLEM_EXPLANATIONS[problem]
    return `the channel. ${meaning}. ${remedy()}`
  }
  if (channel.job !== null) return `its turn: the channel pays another ${isRun ? 'employer' : 'job or run'}`
  if (short > 0) {
    return `a higher balance: it has too little for ${short} of ${left} transfers. ${PROBLEM_EXPLANATIONS.balance.remedy()}`
  }
  return doubted === left ? 'a repeated check of the ledger, or another transfer' : 'its host'
}
