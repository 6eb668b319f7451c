import { and, eq, sql } from 'drizzle-orm'
import { relayLines } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { IS_OPEN_LINE } from '#lib/transfers/line.ts'
import { findBatchRun } from './batch-run.ts'
import { type ChannelWait, describeWait } from './channel-waits.ts'
import { listChannels } from './channels.ts'
import type { JobSummary } from './jobs.ts'
import { IS_LEASED, IS_SENT } from './line-state.ts'

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
