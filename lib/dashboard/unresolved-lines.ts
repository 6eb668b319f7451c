import { type SQL, sql } from 'drizzle-orm'
import { payouts } from '#drizzle/schema/directory.ts'
import { relayJobs, relayLines } from '#drizzle/schema/relay.ts'

/**
 * Whether an item still needs attention. An item of a job does, because nothing says whether the employer has paid it
 * in another way. An item of a run does while its payout is `ready` and no later run has it: a failed payout, or one
 * whose outcome is unknown, is listed with its batch or transfer.
 */
export const isUnresolved: SQL = sql`(${relayLines.outcome} in ('failed', 'unknown') and (${relayLines.payout} is null or (
  exists (select from ${payouts} where ${payouts.id} = ${relayLines.payout} and ${payouts.status} = 'ready')
  and not exists (select from ${relayLines} as later join ${relayJobs} as later_job on later_job.id = later.job
    where later.payout = ${relayLines.payout} and later_job.created_at > ${relayJobs.createdAt}))))`
