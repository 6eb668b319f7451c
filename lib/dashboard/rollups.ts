import { and, eq, gt, inArray, isNull, lt, lte, ne, not, type SQL, sql } from 'drizzle-orm'
import { auditLog } from '#drizzle/schema/audit.ts'
import { refusalCounts, rollups, settlementCounts } from '#drizzle/schema/rollups.ts'
import { transfers } from '#drizzle/schema/transfers.ts'
import { type Database, transact } from '#lib/db/connection.ts'

/** The upper bounds of the buckets of settlement times, in seconds. The last bucket has none. */
export const SECONDS = [
  0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 5.5, 6, 6.5, 7, 7.5, 8, 8.5, 9, 9.5, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19,
  20, 22, 24, 26, 28, 30, 35, 40, 45, 50, 55, 60, 75, 90, 105, 120, 150, 180, 210, 240, 270, 300, 330,
] as const

/** The `hour` of the sum of all hours. */
export const EVER = 'ever'

/** The UTC hour of a time, YYYY-MM-DDTHH. */
export const hourOf = (at: Date): string => at.toISOString().slice(0, 13)

const seconds = sql`extract(epoch from ${transfers.settledAt} - ${transfers.createdAt})`
/** The clocks of two hosts may differ by more than a transfer took. */
const milliseconds = sql`round(greatest(0, ${seconds} * 1000))::bigint`
const hour = sql<string>`to_char(${transfers.createdAt} at time zone 'UTC', 'YYYY-MM-DD"T"HH24')`
const sponsor = sql<string>`coalesce(${transfers.sponsor}, '')`
const bucket = sql`width_bucket(${seconds}, ${sql.raw(`array[${SECONDS.join(', ')}]::numeric[]`)})`

/** The dimensions of a settled transfer in the counts, and the values that are added up. */
export const DIMENSIONS = { hour, status: transfers.status, sponsor, bucket }
export const SUMS = {
  count: sql`count(*)`.mapWith(Number),
  milliseconds: sql`sum(${milliseconds})`.mapWith(Number),
  fees: sql`sum(coalesce(${transfers.feeCharged}, 0))`.mapWith(BigInt),
}

/** The condition for the calls that a channel of the relay makes for itself. */
export const isOwnCall = and(inArray(transfers.kind, ['register', 'merge']), isNull(transfers.sponsor)) as SQL

/** The condition for the settled transfers that are counted: those of users. */
export const isCounted = and(ne(transfers.kind, 'deposit'), not(isOwnCall)) as SQL

type Rollup = (typeof rollups.$inferSelect)['name']

/** The sequence that numbers the rows of a roll-up, and the statement that adds its rows to the counts. */
const SOURCES: Record<Rollup, { sequence: string; add: (after: number, through: number) => SQL }> = {
  settlements: {
    sequence: 'transfer_settlements',
    add: (
      after,
      through,
    ) => sql`INSERT INTO ${settlementCounts} AS counts (hour, status, sponsor, bucket, count, milliseconds, fees)
      SELECT coalesce(hour, ${EVER}), status, sponsor, bucket, count(*), sum(milliseconds), sum(fees) FROM (
        SELECT ${hour} AS hour, ${transfers.status} AS status, ${sponsor} AS sponsor, ${bucket} AS bucket,
          ${milliseconds} AS milliseconds, coalesce(${transfers.feeCharged}, 0) AS fees
        FROM ${transfers} WHERE ${and(isCounted, gt(transfers.settlement, after), lte(transfers.settlement, through))}
      ) AS settled GROUP BY GROUPING SETS ((hour, status, sponsor, bucket), (status, sponsor, bucket))
      ON CONFLICT (hour, status, sponsor, bucket) DO UPDATE SET count = counts.count + excluded.count,
        milliseconds = counts.milliseconds + excluded.milliseconds, fees = counts.fees + excluded.fees`,
  },
  refusals: {
    sequence: 'audit_log_sequence_seq',
    add: (after, through) => sql`INSERT INTO ${refusalCounts} AS counts (reason, count)
      SELECT ${auditLog.detail} ->> 'reason', count(*) FROM ${auditLog}
      WHERE ${and(eq(auditLog.action, 'transfer.refused'), gt(auditLog.sequence, after), lte(auditLog.sequence, through))}
      GROUP BY 1 ON CONFLICT (reason) DO UPDATE SET count = counts.count + excluded.count`,
  },
}

/** The maximum number of rows that a round counts. */
const MAX_NUMBERS = 50_000

/** How long the counts of an hour are kept (days): the longest chart shows 30 days. */
const KEPT_DAYS = 32

/**
 * Adds the transfers that were settled or refused since the last round to the counts. Resolves to how many numbers it
 * covered.
 */
export async function rollUp(db: Database, now: Date): Promise<number> {
  let covered = 0
  for (const name of Object.keys(SOURCES) as Rollup[]) covered += await advance(db, name)
  const before = hourOf(new Date(now.getTime() - KEPT_DAYS * 86_400_000))
  await db.delete(settlementCounts).where(lt(settlementCounts.hour, before))
  return covered
}

/**
 * Numbers commit out of order, so a number that was given out must not be passed before its transaction has ended. Every
 * number up to the sequence's last one belongs to a transaction whose id is below that of a transaction which begins
 * after the sequence was read. Once no transaction below that id runs, all of these numbers are visible or never will be.
 */
async function advance(db: Database, name: Rollup): Promise<number> {
  const { sequence, add } = SOURCES[name]
  const last = await readNumber(db, sql`coalesce(pg_sequence_last_value(${sequence}::regclass), 0)`)
  return await transact(db, async (tx) => {
    await tx.insert(rollups).values({ name }).onConflictDoNothing()
    const isOfName = eq(rollups.name, name)
    const [row] = await tx.select().from(rollups).where(isOfName).for('update')
    if (!row) throw new Error('a roll-up that was just inserted is gone')
    const own = BigInt(await readNumber(tx, sql`pg_current_xact_id()::text`))
    const oldest = BigInt(await readNumber(tx, sql`pg_snapshot_xmin(pg_current_snapshot())::text`))
    const { after } = row
    // A higher id than this transaction's comes from the server that the database was restored from.
    const isPending = row.bound > after && row.boundXid <= own
    // Another process may have counted beyond `last` since it was read.
    const { bound, boundXid } = isPending ? row : { bound: Math.max(last, after), boundXid: own }
    const isComplete = oldest >= boundXid
    const through = isComplete ? Math.min(bound, after + MAX_NUMBERS) : after
    if (through > after) await tx.execute(add(after, through))
    await tx.update(rollups).set({ after: through, bound, boundXid }).where(isOfName)
    return through - after
  })
}

async function readNumber(db: Database, value: SQL): Promise<number> {
  const [row] = await db.select({ value: value.mapWith(Number) }).from(sql`(VALUES (1)) AS one`)
  return row?.value ?? 0
}
