import { desc, eq, gt, sql } from 'drizzle-orm'
import { type JobStatus, relayJobs, relayLines } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { IS_OPEN_LINE } from '#lib/transfers/line.ts'
import { parseManifest } from '#lib/wallet/manifest.ts'
import { type ChannelWait, describeWait } from './channel-waits.ts'
import { listChannels } from './channels.ts'
import { countOf } from './list.ts'

/** A channel that pays payouts of a run. */
export interface RunChannelLine extends ChannelWait {
  /** the last ledger of the employer's delegation */
  liveUntilLedger: number
  paid: number
  /** payouts that it has yet to pay */
  left: number
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
  const channels = await listChannels(db, manifest?.token ?? '', now)
  return {
    status: job.status,
    createdAt: job.createdAt,
    endedAt: job.endedAt,
    error: job.error,
    account: job.userSub,
    channels: (manifest?.delegations ?? []).map(({ channel: address, liveUntilLedger }) => {
      const own = items.get(address) ?? NO_ITEMS
      const channel = channels.find((each) => each.address === address)
      const waitsFor = own.left === 0 ? '' : describeWait({ job: job.id, isRun: true }, channel, own)
      return { address, liveUntilLedger, paid: own.paid, left: own.left, waitsFor }
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
