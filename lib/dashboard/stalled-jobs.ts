import { and, count, eq, inArray, sql } from 'drizzle-orm'
import { paymentStops, relayChannels, relayLines } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { IS_SEEN, RUN_PROBLEMS } from '#lib/relay/channel-state.ts'
import { IS_OPEN_LINE } from '#lib/transfers/line.ts'
import type { AttentionRow, RecordCondition } from './attention.ts'
import { IS_CURRENT_TOKEN, START_RELAY } from './channels.ts'
import { JOB_PROGRESSED_AT } from './jobs.ts'
import { isLate } from './lateness.ts'
import { LINE_STATE } from './line-state.ts'
import { countOf } from './list.ts'

/** A job or run is unfinished, and none of its lines has ended lately. */
export const jobStalled: RecordCondition = {
  level: 'late',
  holds: (now) => isLate('job', now),
  order: [JOB_PROGRESSED_AT],
  describe: async (db, ids, rows) => {
    const lines = await countOpenLines(db, ids)
    const linesOf = ({ id }: AttentionRow) => lines.get(id) ?? NO_LINES
    const counts = await Promise.all(
      rows.map(async (row) => [row.id, await countChannels(db, isRun(row), linesOf(row).spenders)] as const),
    )
    const channels = new Map(counts)
    return (row) => {
      const open = linesOf(row)
      return {
        what: `${open.left} ${open.left === 1 ? 'transfer' : 'transfers'}${isRun(row) ? ' of its run' : ''} unfinished`,
        isOngoing: true,
        ...describeStall(row, open, channels.get(row.id) ?? NO_CHANNELS),
        actor: 'operator',
      }
    }
  },
}

/** A run pays a batch. */
const isRun = ({ batch }: AttentionRow) => batch !== null

const NO_LINES = { left: 0, waiting: 0, preparing: 0, sent: 0, spenders: [] as string[] }

/** Counts the unfinished lines of jobs by state, with the channels that they name. Only a run's lines name one. */
async function countOpenLines(db: Database, ids: string[]) {
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
    .where(and(inArray(job, ids), IS_OPEN_LINE))
    .groupBy(job)
  return new Map(rows.map((row) => [row.job, row]))
}

const NO_CHANNELS = { running: 0, paused: 0, stopped: 0, fit: 0 }

/** Counts the channels of running relays that may pay a job. For a run, these are the ones that its waiting lines name. */
async function countChannels(db: Database, ofRun: boolean, spenders: string[]) {
  const { address, problem, paused, runs } = relayChannels
  const isFit = ofRun
    ? sql`(${problem} is null or ${inArray(problem, [...RUN_PROBLEMS])}) and ${runs}`
    : sql`${problem} is null`
  const [counts] = await db
    .select({
      running: count(),
      paused: countOf(eq(paused, true)),
      /** the tokens whose payments are stopped */
      stopped: sql<number>`(select count(*) from ${paymentStops} where ${paymentStops.since} is not null)`.mapWith(
        Number,
      ),
      /** neither paused nor with a problem that keeps them from paying it */
      fit: countOf(sql`${isFit} and not ${paused}`),
    })
    .from(relayChannels)
    .where(and(IS_SEEN, IS_CURRENT_TOKEN, ofRun ? inArray(address, spenders) : undefined))
  return counts
}

/** What the lines of a stalled job wait for, and the next step. */
function describeStall(row: AttentionRow, { waiting, preparing, sent }: typeof NO_LINES, channels: typeof NO_CHANNELS) {
  const lines = [
    [waiting, 'waiting for a channel'],
    [preparing, 'being prepared'],
    [sent, 'sent, without a result'],
  ]
    .filter(([number]) => number !== 0)
    .map(([number, words]) => `${number} ${words}`)
  const { running, paused, fit } = channels
  const none = isRun(row) ? 'no relay runs the channels that the run names' : 'no relay is running'
  const state = running === 0 ? none : `${fit} of ${running} channels can pay, ${paused} are paused`
  return { why: [...lines, state].join('; '), remedy: nextStep(row, channels) }
}

function nextStep(row: AttentionRow, { running, paused, stopped, fit }: typeof NO_CHANNELS): string {
  if (stopped > 0) return 'Payments are stopped: see the overview.'
  if (running === 0) {
    return isRun(row)
      ? 'Start the relays whose CHANNEL_SEEDS contain the channels that the batch’s page names.'
      : `${START_RELAY}.`
  }
  if (fit > 0) return `Search the relay’s log for ${row.id}: its last lines say what the job waits for.`
  return paused > 0
    ? 'Resume a paused channel on Jobs.'
    : 'Remove the problem of a channel: Jobs lists each problem with its remedy.'
}
