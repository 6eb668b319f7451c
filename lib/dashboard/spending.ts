import { and, eq, gte, min, notInArray, sql } from 'drizzle-orm'
import { quotas, sponsorFloats } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { CALLS, EVERYBODY, quotaDay } from '#lib/transfers/quota.ts'
import { transferRows } from './transfer-rows.ts'

/** An account's use of its daily quota, in stroops and transfers. */
interface QuotaUse {
  account: string
  /** the bids of open transfers */
  held: bigint
  used: bigint
  count: number
}

/** Today's use of the quotas, the reserved float and the sponsor's spending rate, in stroops. */
export interface Spending {
  everybody: QuotaUse
  /** the three accounts with the highest use */
  busiest: QuotaUse[]
  floatHeld: bigint
  /** the sponsor's spending per day, at the rate of the last 24 hours, or since its first transfer if that is later */
  perDay: bigint
}

const HOUR_MS = 3_600_000n
const DAY_MS = 24n * HOUR_MS

const COLUMNS = { account: quotas.account, held: quotas.held, used: quotas.used, count: quotas.count }

export async function readSpending(db: Database, sponsor: string, now: Date): Promise<Spending> {
  const day = quotaDay(now)
  const today = eq(quotas.day, day)
  const [[everybody], busiest, [float], perDay] = await Promise.all([
    db
      .select(COLUMNS)
      .from(quotas)
      .where(and(eq(quotas.account, EVERYBODY), today)),
    db
      .select(COLUMNS)
      .from(quotas)
      .where(and(today, notInArray(quotas.account, [EVERYBODY, CALLS])))
      .orderBy(sql`${quotas.used} + ${quotas.held} desc`, quotas.account)
      .limit(3),
    db.select({ held: sponsorFloats.held }).from(sponsorFloats).where(eq(sponsorFloats.sponsor, sponsor)),
    readRate(db, sponsor, now),
  ])
  return {
    everybody: everybody ?? { account: EVERYBODY, held: 0n, used: 0n, count: 0 },
    busiest,
    floatHeld: float?.held ?? 0n,
    perDay,
  }
}

async function readRate(db: Database, sponsor: string, now: Date): Promise<bigint> {
  const { createdAt, feeCharged } = transferRows
  const isOwn = eq(transferRows.sponsor, sponsor)
  const dayAgo = new Date(now.getTime() - Number(DAY_MS))
  const [[spent], [first]] = await Promise.all([
    db
      .select({ stroops: sql<string>`coalesce(sum(${feeCharged}), 0)::text` })
      .from(transferRows)
      .where(and(isOwn, gte(createdAt, dayAgo))),
    db
      .select({ at: min(createdAt) })
      .from(transferRows)
      .where(isOwn),
  ])
  const inService = BigInt(now.getTime() - (first?.at ?? dayAgo).getTime())
  return (BigInt(spent?.stroops ?? 0) * DAY_MS) / clamp(HOUR_MS, inService, DAY_MS)
}

function clamp(least: bigint, value: bigint, most: bigint): bigint {
  if (value < least) return least
  return value > most ? most : value
}
