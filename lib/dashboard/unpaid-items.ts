import { and, eq, gte, isNull, type SQL, sql } from 'drizzle-orm'
import { identities } from '#drizzle/schema/directory.ts'
import { batchItems, batchJobs } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { LISTED_FOR_MS } from './attention.ts'
import { transferRows } from './transfer-rows.ts'

/**
 * The hash of the transfer that paid a failed item of a job later; null if there is none. A transfer matches if the
 * same user or organisation sent it to the same recipient after the job had ended. Each transfer matches at most one
 * failed item of the job. Amounts are sealed and can't be compared. For queries that join items with their jobs.
 */
export const paidLater: SQL<string | null> = sql<string | null>`case when ${batchItems.status} = 'failed' then (
  select ${transferRows.hash} from ${transferRows}
  where ${transferRows.recipient} = ${batchItems.recipient} and ${transferRows.status} = 'succeeded'
    and ${transferRows.createdAt} > ${batchJobs.endedAt}
    and (${batchItems.quotaAccount} in (${transferRows.quotaAccount}, ${transferRows.account})
      or ${transferRows.organisation} = (select ${identities.organisation} from ${identities}
        where ${identities.kind} = ${batchJobs.userKind} and ${identities.sub} = ${batchJobs.userSub}))
  order by ${transferRows.createdAt}
  limit 1 offset (select count(*) from ${batchItems} as earlier where earlier.job = ${batchItems.job}
    and earlier.recipient = ${batchItems.recipient} and earlier.status = 'failed' and earlier.position < ${batchItems.position})
) end`

/** The condition that an item failed and was not paid later, or that its outcome can no longer be determined. */
export const isUnpaid = sql`(${batchItems.status} = 'unknown' or (${batchItems.status} = 'failed' and ${paidLater} is null))`

/** The condition that no channel had enough for an item, and that none of them has received anything since. */
export const isShort = sql`(cardinality(${batchItems.unable}) > 0 and not exists (
  select from unnest(${batchItems.unable}) as channel (address) join ${transferRows} on ${transferRows.recipient} = channel.address
  where ${transferRows.status} = 'succeeded' and ${transferRows.createdAt} > ${batchItems.settledAt}))`

/** Counts, by the address of each channel, the recently failed items for which its balance is still too low. */
export async function countShortages(db: Database, now: Date): Promise<Map<string, number>> {
  const items = await db
    .select({ unable: batchItems.unable })
    .from(batchItems)
    .innerJoin(batchJobs, eq(batchJobs.id, batchItems.job))
    .where(
      and(
        eq(batchItems.status, 'failed'),
        gte(batchItems.settledAt, new Date(now.getTime() - LISTED_FOR_MS)),
        isShort,
        isNull(paidLater),
      ),
    )
    .limit(1_000)
  const grouped = Map.groupBy(
    items.flatMap(({ unable }) => unable),
    (address) => address,
  )
  return new Map([...grouped].map(([address, of]) => [address, of.length]))
}
