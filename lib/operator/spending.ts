import { and, eq, ne, sql } from 'drizzle-orm'
import { quotas, sponsorFloats } from '#drizzle/schema.ts'
import type { Database } from '#lib/db.ts'
import { EVERYBODY, quotaDay } from '#lib/sponsor/quota.ts'

/** What an account has used of today, in stroops and transfers. */
export interface QuotaUse {
  account: string
  /** bid by transfers whose outcome is open */
  held: bigint
  used: bigint
  count: number
}

/** Today's use of the quotas, and what open bids may still take from the sponsor's balance, in stroops. */
export interface Spending {
  everybody: QuotaUse
  /** the accounts that have used most, three at most */
  busiest: QuotaUse[]
  floatHeld: bigint
}

const COLUMNS = { account: quotas.account, held: quotas.held, used: quotas.used, count: quotas.count }

export async function readSpending(db: Database, sponsor: string, now: Date): Promise<Spending> {
  const day = quotaDay(now)
  const today = eq(quotas.day, day)
  const [[everybody], busiest, [float]] = await Promise.all([
    db
      .select(COLUMNS)
      .from(quotas)
      .where(and(eq(quotas.account, EVERYBODY), today)),
    db
      .select(COLUMNS)
      .from(quotas)
      .where(and(today, ne(quotas.account, EVERYBODY)))
      .orderBy(sql`${quotas.used} + ${quotas.held} desc`, quotas.account)
      .limit(3),
    db.select({ held: sponsorFloats.held }).from(sponsorFloats).where(eq(sponsorFloats.sponsor, sponsor)),
  ])
  return {
    everybody: everybody ?? { account: EVERYBODY, held: 0n, used: 0n, count: 0 },
    busiest,
    floatHeld: float?.held ?? 0n,
  }
}
