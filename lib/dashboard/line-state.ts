import { and, eq, type SQL, sql } from 'drizzle-orm'
import { payouts } from '#drizzle/schema/directory.ts'
import { LINE_OUTCOMES, relayJobs, relayLines } from '#drizzle/schema/relay.ts'
import { transfers } from '#drizzle/schema/transfers.ts'

/**
 * What a line of a job or run is doing: `waiting` for a channel, `preparing` while a host leases it, `sent` while its transfer is
 * open, and its outcome after that. No row stores it.
 */
export const LINE_STATES = ['waiting', 'preparing', 'sent', ...LINE_OUTCOMES] as const
export type LineState = (typeof LINE_STATES)[number]

const isOfLine = and(eq(transfers.lineJob, relayLines.job), eq(transfers.linePosition, relayLines.position))

/** The condition for lines whose transfer is open. */
export const IS_SENT = sql<boolean>`exists (select from ${transfers} where ${isOfLine} and ${transfers.status} = 'open')`

/** The condition for lines whose payment a host prepares. */
export const IS_LEASED = sql<boolean>`(${relayLines.leasedUntil} is not null and ${relayLines.leasedUntil} > clock_timestamp())`

export const LINE_STATE = sql<LineState>`case when ${relayLines.outcome} is not null then ${relayLines.outcome}
  when ${IS_SENT} then 'sent' when ${IS_LEASED} then 'preparing' else 'waiting' end`

/** The id of the last transfer that was recorded for a line; null without one. */
export const LAST_TRANSFER = sql<string | null>`(select ${transfers.id} from ${transfers} where ${isOfLine}
  order by ${transfers.createdAt} desc, ${transfers.sequence} desc limit 1)`

/**
 * Whether an item still needs attention. An item of a job does, because nothing says whether the employer has paid it
 * in another way. An item of a run does while its payout is `ready` and no later run has it: a failed payout, or one
 * whose outcome is unknown, is listed with its batch or transfer.
 */
export const isUnresolved: SQL = sql`(${relayLines.outcome} in ('failed', 'unknown') and (${relayLines.payout} is null or (
  exists (select from ${payouts} where ${payouts.id} = ${relayLines.payout} and ${payouts.status} = 'ready')
  and not exists (select from ${relayLines} as later join ${relayJobs} as later_job on later_job.id = later.job
    where later.payout = ${relayLines.payout} and later_job.created_at > ${relayJobs.createdAt}))))`
