import { and, count, eq, inArray, sql } from 'drizzle-orm'
import { batches, organisations } from '#drizzle/schema/directory.ts'
import { batchItems, batchJobs, relayChannels } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { IS_SEEN, RUN_PROBLEMS } from '#lib/relay/channel-state.ts'
import { OPEN_ITEM } from '#lib/relay/item-row.ts'
import { ACKNOWLEDGEMENT, acknowledgementRows, acknowledges, isUnacknowledged } from './acknowledgements.ts'
import { type Attention, MAX_LISTED } from './attention.ts'
import { IS_CURRENT_TOKEN, START_RELAY } from './channels.ts'
import { CONDITIONS } from './conditions.ts'
import { isOf, subjectOf } from './failed-jobs.ts'
import { jobLimit } from './lateness.ts'
import { countOf } from './list.ts'
import { findUsersOf } from './users.ts'

/**
 * Lists the running jobs without recent progress.
 * @param only the job, or the batch of a run, to report on alone, acknowledged or not
 */
export async function listStalledJobs(
  db: Database,
  now: Date,
  only?: { job: string } | { batch: string },
): Promise<Attention[]> {
  const movedAt = sql`max(greatest(${batchItems.queuedAt}, ${batchItems.sentAt}, ${batchItems.settledAt}))`
  const moving = db
    .select({
      id: batchJobs.id,
      kind: batchJobs.userKind,
      sub: batchJobs.userSub,
      run: batchJobs.batch,
      movedAt: movedAt.mapWith(batchItems.queuedAt).as('moved_at'),
      left: countOf(sql`${batchItems.settledAt} is null`).as('left'),
      queued: countOf(eq(batchItems.status, 'queued')).as('queued'),
      taken: countOf(eq(batchItems.status, 'taken')).as('taken'),
      signed: countOf(eq(batchItems.status, 'signed')).as('signed'),
    })
    .from(batchJobs)
    .innerJoin(batchItems, eq(batchItems.job, batchJobs.id))
    .where(and(eq(batchJobs.status, 'running'), only && isOf(only)))
    .groupBy(batchJobs.id)
    .having(sql`${movedAt} < ${jobLimit(now).toISOString()}::timestamptz`)
    .as('moving')
  const jobs = await db
    .select({
      job: moving._.selectedFields,
      batch: { id: batches.id, name: batches.name },
      employer: { id: organisations.id, name: organisations.name },
      acknowledgement: ACKNOWLEDGEMENT,
    })
    .from(moving)
    .leftJoin(batches, eq(batches.id, moving.run))
    .leftJoin(organisations, eq(organisations.id, batches.organisation))
    .leftJoin(acknowledgementRows, acknowledges('jobStalled', moving.id, moving.movedAt))
    .where(only ? undefined : isUnacknowledged)
    .orderBy(moving.movedAt)
    .limit(MAX_LISTED)
  const users = await findUsersOf(
    db,
    jobs.map(({ job }) => job),
  )
  const counts = await Promise.all(jobs.map(({ job }) => countChannels(db, job)))
  return jobs.map(({ job, batch, employer, acknowledgement }, index) => ({
    key: `slow ${job.id}`,
    ...CONDITIONS.jobStalled.notice,
    since: job.movedAt,
    ...subjectOf({ id: job.id, batch }),
    what: `${job.left} ${job.left === 1 ? 'transfer' : 'transfers'}${batch ? ' of its run' : ''} unfinished`,
    isOngoing: true,
    ...describeStall(job, counts[index] ?? NO_CHANNELS),
    actor: 'operator',
    ...(employer ? { organisation: employer } : users(job)),
    acknowledgeable: { condition: 'jobStalled', subject: job.id, lastEvent: job.movedAt },
    acknowledgement,
    page: `/jobs/${job.id}`,
  }))
}

/** The channels of running relays that may pay a job. For a run, these are the ones that its waiting items name. */
interface ChannelCounts {
  running: number
  paused: number
  /** what they paid is unknown, so no item is paid that was queued before */
  held: number
  /** neither paused nor with a problem that keeps them from paying it */
  fit: number
}

const NO_CHANNELS: ChannelCounts = { running: 0, paused: 0, held: 0, fit: 0 }

async function countChannels(
  db: Database,
  { id, run }: { id: string; run: string | null },
): Promise<ChannelCounts | undefined> {
  const { address, problem, paused, runs } = relayChannels
  const spenders = db
    .select({ spender: batchItems.spender })
    .from(batchItems)
    .where(and(eq(batchItems.job, id), inArray(batchItems.status, OPEN_ITEM)))
  const isFit =
    run === null
      ? sql`${problem} is null`
      : sql`(${problem} is null or ${inArray(problem, [...RUN_PROBLEMS])}) and ${runs}`
  const [counts] = await db
    .select({
      running: count(),
      paused: countOf(eq(paused, true)),
      held: countOf(eq(problem, 'moved')),
      fit: countOf(sql`${isFit} and not ${paused}`),
    })
    .from(relayChannels)
    .where(and(IS_SEEN, IS_CURRENT_TOKEN, run === null ? undefined : inArray(address, spenders)))
  return counts
}

/** What the items of a stalled job wait for, and the next step. */
function describeStall(
  { id, run, queued, taken, signed }: { id: string; run: string | null; queued: number; taken: number; signed: number },
  channels: ChannelCounts,
): { why: string; remedy: string } {
  const items = [
    [queued, 'waiting for a channel'],
    [taken, 'being prepared'],
    [signed, 'sent, without a result'],
  ]
    .filter(([number]) => number !== 0)
    .map(([number, words]) => `${number} ${words}`)
  const { running, paused, fit } = channels
  const none = run === null ? 'no relay is running' : 'no relay runs the channels that the run names'
  const state = running === 0 ? none : `${fit} of ${running} channels can pay, ${paused} are paused`
  return { why: [...items, state].join('; '), remedy: nextOf({ id, run }, channels) }
}

function nextOf(
  { id, run }: { id: string; run: string | null },
  { running, paused, held, fit }: ChannelCounts,
): string {
  if (running === 0 && run === null) return `${START_RELAY}.`
  if (running === 0) return 'Start the relays whose CHANNEL_SEEDS contain the channels that the batch’s page names.'
  if (held > 0)
    return 'Handle the channel that has moved, listed above: what was queued before is paid after its release.'
  if (fit > 0) return `Search the relay’s log for ${id}: its last lines say what the job waits for.`
  return paused > 0
    ? 'Resume a paused channel on Jobs.'
    : 'Remove the problem of a channel: Jobs lists each problem with its remedy.'
}
