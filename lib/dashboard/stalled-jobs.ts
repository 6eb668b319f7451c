import { and, count, eq, inArray, sql } from 'drizzle-orm'
import { batches, organisations } from '#drizzle/schema/directory.ts'
import { paymentStops, relayChannels, relayJobs, relayLines } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { IS_SEEN, RUN_PROBLEMS } from '#lib/relay/channel-state.ts'
import { IS_OPEN_LINE } from '#lib/transfers/line.ts'
import { ACKNOWLEDGEMENT, acknowledgementRows, acknowledges, isUnacknowledged } from './acknowledgements.ts'
import { type Attention, MAX_LISTED } from './attention.ts'
import { IS_CURRENT_TOKEN, START_RELAY } from './channels.ts'
import { CONDITIONS } from './conditions.ts'
import { isOf, subjectOf } from './failed-jobs.ts'
import { JOB_PROGRESSED_AT } from './jobs.ts'
import { jobLimit } from './lateness.ts'
import { LINE_STATE } from './line-state.ts'
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
  const jobs = await db
    .select({
      id: relayJobs.id,
      kind: relayJobs.userKind,
      sub: relayJobs.userSub,
      run: relayJobs.batch,
      progressedAt: JOB_PROGRESSED_AT,
      batch: { id: batches.id, name: batches.name },
      employer: { id: organisations.id, name: organisations.name },
      acknowledgement: ACKNOWLEDGEMENT,
    })
    .from(relayJobs)
    .leftJoin(batches, eq(batches.id, relayJobs.batch))
    .leftJoin(organisations, eq(organisations.id, batches.organisation))
    .leftJoin(acknowledgementRows, acknowledges('jobStalled', relayJobs.id, JOB_PROGRESSED_AT))
    .where(
      and(
        eq(relayJobs.status, 'running'),
        sql`${JOB_PROGRESSED_AT} < ${jobLimit(now).toISOString()}::timestamptz`,
        only ? isOf(only) : isUnacknowledged,
      ),
    )
    .orderBy(JOB_PROGRESSED_AT)
    .limit(MAX_LISTED)
  const items = await countOpenItems(
    db,
    jobs.map(({ id }) => id),
  )
  const openOf = ({ id }: { id: string }) => items.get(id) ?? NO_ITEMS
  const users = await findUsersOf(db, jobs)
  const channels = await Promise.all(jobs.map((job) => countChannels(db, job, openOf(job))))
  return jobs.map((job, index) => {
    const { id, progressedAt, batch, employer, acknowledgement } = job
    const open = openOf(job)
    return {
      key: `slow ${id}`,
      ...CONDITIONS.jobStalled.notice,
      since: progressedAt,
      ...subjectOf({ id, batch }),
      what: `${open.left} ${open.left === 1 ? 'transfer' : 'transfers'}${batch ? ' of its run' : ''} unfinished`,
      isOngoing: true,
      ...describeStall({ ...job, ...open }, channels[index] ?? NO_CHANNELS),
      actor: 'operator',
      ...(employer ? { organisation: employer } : users(job)),
      acknowledgeable: { condition: 'jobStalled', subject: id, lastEvent: progressedAt },
      acknowledgement,
      page: `/jobs/${id}`,
    }
  })
}

/** The unfinished lines of a job by state, and the channels they name. Only a run's lines name one. */
interface OpenItems {
  left: number
  waiting: number
  preparing: number
  sent: number
  spenders: string[]
}

const NO_ITEMS: OpenItems = { left: 0, waiting: 0, preparing: 0, sent: 0, spenders: [] }

async function countOpenItems(db: Database, ids: readonly string[]): Promise<Map<string, OpenItems>> {
  if (ids.length === 0) return new Map()
  const { job, spender } = relayLines
  const rows = await db
    .select({
      job,
      left: count(),
      waiting: countOf(sql`${LINE_STATE} = 'waiting'`),
      preparing: countOf(sql`${LINE_STATE} = 'preparing'`),
      sent: countOf(sql`${LINE_STATE} = 'sent'`),
      spenders: sql<string[]>`coalesce(array_agg(distinct ${spender}) filter (where ${spender} is not null), '{}')`,
    })
    .from(relayLines)
    .where(and(inArray(job, [...ids]), IS_OPEN_LINE))
    .groupBy(job)
  return new Map(rows.map((row) => [row.job, row]))
}

/** The channels of running relays that may pay a job. For a run, these are the ones that its waiting items name. */
interface ChannelCounts {
  running: number
  paused: number
  /** the tokens whose payments are stopped */
  stopped: number
  /** neither paused nor with a problem that keeps them from paying it */
  fit: number
}

const NO_CHANNELS: ChannelCounts = { running: 0, paused: 0, stopped: 0, fit: 0 }

async function countChannels(
  db: Database,
  { run }: { run: string | null },
  { spenders }: OpenItems,
): Promise<ChannelCounts | undefined> {
  const { address, problem, paused, runs } = relayChannels
  const isFit =
    run === null
      ? sql`${problem} is null`
      : sql`(${problem} is null or ${inArray(problem, [...RUN_PROBLEMS])}) and ${runs}`
  const [counts] = await db
    .select({
      running: count(),
      paused: countOf(eq(paused, true)),
      stopped: sql<number>`(select count(*) from ${paymentStops} where ${paymentStops.since} is not null)`.mapWith(
        Number,
      ),
      fit: countOf(sql`${isFit} and not ${paused}`),
    })
    .from(relayChannels)
    .where(and(IS_SEEN, IS_CURRENT_TOKEN, run === null ? undefined : inArray(address, spenders)))
  return counts
}

/** What the items of a stalled job wait for, and the next step. */
function describeStall(
  {
    id,
    run,
    waiting,
    preparing,
    sent,
  }: { id: string; run: string | null; waiting: number; preparing: number; sent: number },
  channels: ChannelCounts,
): { why: string; remedy: string } {
  const items = [
    [waiting, 'waiting for a channel'],
    [preparing, 'being prepared'],
    [sent, 'sent, without a result'],
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
  { running, paused, stopped, fit }: ChannelCounts,
): string {
  if (stopped > 0) return 'Payments are stopped: see the overview.'
  if (running === 0 && run === null) return `${START_RELAY}.`
  if (running === 0) return 'Start the relays whose CHANNEL_SEEDS contain the channels that the batch’s page names.'
  if (fit > 0) return `Search the relay’s log for ${id}: its last lines say what the job waits for.`
  return paused > 0
    ? 'Resume a paused channel on Jobs.'
    : 'Remove the problem of a channel: Jobs lists each problem with its remedy.'
}
