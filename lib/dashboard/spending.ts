import { and, eq, gte, lt, ne, notInArray, sql } from 'drizzle-orm'
import { settlementCounts } from '#drizzle/schema/counts.ts'
import { identities, organisations } from '#drizzle/schema/directory.ts'
import { quotas, sponsorFloats, transfers } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { EVER, hourOf } from '#lib/transfers/counts.ts'
import { CALLS, EVERYBODY, quotaDay } from '#lib/transfers/quota.ts'

/** Today's use of the quotas, the reserved float and the sponsor's recent fees, in stroops. */
export type Spending = Awaited<ReturnType<typeof readSpending>>

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** An account's use of its daily quota, in stroops and transfers. Open transfers hold their bids. */
const COLUMNS = { account: quotas.account, held: quotas.held, used: quotas.used, count: quotas.count }

export async function readSpending(db: Database, sponsor: string, now: Date) {
  const today = eq(quotas.day, quotaDay(now))
  const [[everybody], busiest, [float], spent] = await Promise.all([
    db
      .select(COLUMNS)
      .from(quotas)
      .where(and(eq(quotas.account, EVERYBODY), today)),
    // An account has no organisation if it has no user yet, or its user signs in with an identity provider.
    db
      .select({ ...COLUMNS, organisation: { id: organisations.id, name: organisations.name } })
      .from(quotas)
      .leftJoin(identities, and(eq(identities.kind, 'ledger'), eq(identities.sub, quotas.account)))
      .leftJoin(organisations, eq(organisations.id, identities.organisation))
      .where(and(today, notInArray(quotas.account, [EVERYBODY, CALLS])))
      .orderBy(sql`${quotas.used} + ${quotas.held} desc`, quotas.account)
      .limit(3),
    db.select({ held: sponsorFloats.held }).from(sponsorFloats).where(eq(sponsorFloats.sponsor, sponsor)),
    readSpent(db, sponsor, now),
  ])
  return {
    everybody: everybody ?? { account: EVERYBODY, held: 0n, used: 0n, count: 0 },
    /** the three accounts with the highest use */
    busiest,
    floatHeld: float?.held ?? 0n,
    ...spent,
  }
}

/**
 * The fees charged to a sponsor for the transfers of the last 24 hours. The first hour is partial, so its transfers are
 * summed directly.
 */
async function readSpent(db: Database, sponsor: string, now: Date) {
  const since = new Date(now.getTime() - DAY_MS)
  const whole = new Date(Math.ceil(since.getTime() / HOUR_MS) * HOUR_MS)
  const { hour, fees, sponsor: payer } = settlementCounts
  const { createdAt, feeCharged } = transfers
  const [counted, [first]] = await Promise.all([
    db
      .select({ hour, stroops: sql<string>`sum(${fees})::text` })
      .from(settlementCounts)
      .where(and(gte(hour, hourOf(whole)), ne(hour, EVER), eq(payer, sponsor)))
      .groupBy(hour)
      .orderBy(hour),
    db
      .select({ stroops: sql<string>`coalesce(sum(${feeCharged}), 0)::text` })
      .from(transfers)
      .where(and(eq(transfers.sponsor, sponsor), gte(createdAt, since), lt(createdAt, whole))),
  ])
  // By the hour in which the transfers were recorded, oldest first, without the partial first hour.
  const hours = counted.map(({ hour, stroops }) => ({ at: new Date(`${hour}:00:00Z`), stroops: BigInt(stroops) }))
  return { hours, spentInDay: hours.reduce((sum, { stroops }) => sum + stroops, BigInt(first?.stroops ?? 0)) }
}

/** The UTC hour in which the fees of today reached a sum: the current one if only open bids reach it. */
export function reachedAt({ hours }: Pick<Spending, 'hours'>, now: Date, stroops: bigint): Date {
  const day = quotaDay(now)
  let sum = 0n
  for (const { at, stroops: fees } of hours) {
    if (quotaDay(at) !== day) continue
    sum += fees
    if (sum >= stroops) return at
  }
  return new Date(Math.floor(now.getTime() / HOUR_MS) * HOUR_MS)
}
