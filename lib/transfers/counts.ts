import { and, inArray, isNull, ne, not, type SQL, sql } from 'drizzle-orm'
import { type Transfer, type TransferKind, transfers } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'

/** The upper bounds of the buckets of settlement times, in seconds. The last bucket has none. */
export const SECONDS = [
  0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 5.5, 6, 6.5, 7, 7.5, 8, 8.5, 9, 9.5, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19,
  20, 22, 24, 26, 28, 30, 35, 40, 45, 50, 55, 60, 75, 90, 105, 120, 150, 180, 210, 240, 270, 300, 330,
] as const

/** The `hour` of the sum of all hours. */
export const EVER = 'ever'

/** The UTC hour of a time, YYYY-MM-DDTHH. */
export const hourOf = (at: Date): string => at.toISOString().slice(0, 13)

/** The calls that a channel of the relay also makes for itself. */
const CHANNEL_CALLS: readonly TransferKind[] = ['register', 'merge']

/** The condition for the calls that a channel makes for itself. */
export const isOwnCall = and(inArray(transfers.kind, CHANNEL_CALLS), isNull(transfers.sponsor)) as SQL

/** The condition for the transfers that are counted: those of users. */
export const isCounted = and(ne(transfers.kind, 'deposit'), not(isOwnCall)) as SQL

const isOfUser = ({ status, kind, sponsor }: Settled) =>
  status !== 'open' && kind !== 'deposit' && (sponsor !== null || !CHANNEL_CALLS.includes(kind))

type Settled = Pick<Transfer, 'kind' | 'status' | 'sponsor' | 'feeCharged' | 'createdAt' | 'settledAt'> &
  Pick<Transfer, 'organisation' | 'lineJob'>

/**
 * Counts transfers in the SQL transaction that ends them: by hour and over all hours, and for their organisation
 * (functions.sql). Call it last: these rows are locked after all others, always in the same order.
 */
export async function countSettled(tx: Database, ...settled: readonly Settled[]): Promise<void> {
  const counted = settled.filter(isOfUser).map(keyAndSums)
  const groups = [...Map.groupBy(counted, ({ key }) => key.join())]
  for (const [, same] of groups.toSorted(([one], [other]) => (one < other ? -1 : 1))) {
    const key = same.flatMap((one, index) => (index === 0 ? one.key : []))
    const milliseconds = same.reduce((sum, one) => sum + one.milliseconds, 0)
    const fees = same.reduce((sum, one) => sum + one.fees, 0n)
    const values = [...key, same.length, milliseconds, String(fees)].map((value) => sql`${value}`)
    await tx.execute(sql`SELECT count_settled(${sql.join(values, sql`, `)})`)
  }
}

/** Represents the bucket of the times above the last bound. */
const LONGER = 2 ** 31 - 1

function keyAndSums({ createdAt, settledAt, status, sponsor, organisation, lineJob, feeCharged }: Settled) {
  // The clocks of two hosts may differ by more than a transfer took.
  const milliseconds = Math.max(0, Number(settledAt) - createdAt.getTime())
  const bound = SECONDS.find((seconds) => milliseconds < seconds * 1000)
  const key = [hourOf(createdAt), status, sponsor ?? '', bound ? bound * 1000 : LONGER, organisation, lineJob]
  return { key, milliseconds, fees: feeCharged ?? 0n }
}
