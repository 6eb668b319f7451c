import { and, eq, lte, sql } from 'drizzle-orm'
import { quotas, sponsorFloats, type Transfer, type TransferKind } from '#drizzle/schema/transfers.ts'
import { readClock } from '#lib/db/clock.ts'
import type { Database } from '#lib/db/connection.ts'
import { type SponsorRefusal, sponsorRefused } from '#lib/refusal/sponsor-refusal.ts'

/** Limits per UTC day; amounts in stroops. */
export interface QuotaLimits {
  transfersPerAccount: number
  stroopsPerAccount: bigint
  dailyBudget: bigint
  /** the part of the daily budget that registrations and merges may use */
  callsBudget: bigint
}

/** One transfer's claim on the quotas. */
interface Claim {
  kind: TransferKind
  account: string
  /** YYYY-MM-DD, UTC */
  day: string
  sponsor: string | null
  /** stroops */
  bid: bigint
  /**
   * the number of transfers added to the day, or returned to it: none for a rival that only bids more, and none for a line
   * of a run, which adds all its lines when it is queued
   */
  count: 0 | 1
}

/** A transfer's claim, with its whole bid. */
export const claimOf = (transfer: Transfer, count: Claim['count']): Claim => {
  const { kind, account, quotaAccount, quotaDay: day, sponsor, bid } = transfer
  return { kind, account: quotaAccount ?? account, day, sponsor, bid, count }
}

/** Represents the sum of all accounts in the table of quotas. */
export const EVERYBODY = '*'

/**
 * Represents the sum of all registrations and merges. These cost a stranger next to nothing on a test network, so they have a
 * separate budget: when it is used up, other payments continue.
 */
export const CALLS = '*calls'

/** The accounts that sum up a claim, in the order in which their rows are locked. */
const sumsOf = ({ kind }: Pick<Claim, 'kind'>) =>
  kind === 'register' || kind === 'merge' ? ([CALLS, EVERYBODY] as const) : ([EVERYBODY] as const)

/** The UTC day of a timestamp, YYYY-MM-DD. */
export const quotaDay = (now: Date): string => now.toISOString().slice(0, 10)

/** The database's UTC day, YYYY-MM-DD. */
export const readQuotaDay = async (tx: Database): Promise<string> => quotaDay(new Date(await readClock(tx)))

/**
 * Reserves a bid against the account's day, the day of its kind and of all accounts, and the float, in this order and each in one
 * conditional statement, so that concurrent requests can't exceed a limit together. Must run at the end of the transaction that
 * records the transfer, which a refusal rolls back: all accounts share these rows.
 * @param available how much the ledger would let the sponsor spend, in stroops
 * @throws SponsorRefusal
 */
export async function reserve(tx: Database, claim: Claim, limits: QuotaLimits, available: bigint): Promise<void> {
  const { account, bid, count, sponsor } = claim
  if (bid === 0n && count === 0) return
  if (!(await hold(tx, claim, account, limits))) throw await exhausted(tx, claim, limits)
  for (const holder of sumsOf(claim)) {
    const stroopsPerAccount = holder === CALLS ? limits.callsBudget : limits.dailyBudget
    if (!(await hold(tx, claim, holder, { stroopsPerAccount }))) throw sponsorRefused('daily-budget')
  }
  if (sponsor !== null && !(await holdFloat(tx, sponsor, bid, available))) throw sponsorRefused('float')
}

async function hold(
  tx: Database,
  { bid, day, count }: Pick<Claim, 'bid' | 'day'> & { count: number },
  account: string,
  { stroopsPerAccount: stroops, transfersPerAccount: transfers }: AccountLimits,
): Promise<boolean> {
  // The day's first row is inserted without the condition of the update, so its limits are checked here.
  if (bid > stroops || (transfers !== undefined && transfers < count)) return false
  const held = sql`${quotas.held} + ${bid}`
  const sum = sql`${quotas.count} + ${count}`
  const rows = await tx
    .insert(quotas)
    .values({ account, day, held: bid, count })
    .onConflictDoUpdate({
      target: [quotas.account, quotas.day],
      set: { held, count: sum },
      setWhere: and(
        lte(sql`${quotas.used} + ${held}`, stroops),
        transfers === undefined ? undefined : lte(sum, transfers),
      ),
    })
    .returning({ account: quotas.account })
  return rows.length === 1
}

type AccountLimits = { stroopsPerAccount: bigint; transfersPerAccount?: number }

async function holdFloat(tx: Database, sponsor: string, bid: bigint, available: bigint): Promise<boolean> {
  if (bid > available) return false
  const held = sql`${sponsorFloats.held} + ${bid}`
  const rows = await tx
    .insert(sponsorFloats)
    .values({ sponsor, held: bid })
    .onConflictDoUpdate({ target: sponsorFloats.sponsor, set: { held }, setWhere: lte(held, available) })
    .returning({ sponsor: sponsorFloats.sponsor })
  return rows.length === 1
}

/** How many transfers a run adds to an account's day. */
export type RunClaim = Pick<Claim, 'account' | 'day'> & { count: number }

/** Adds all lines of a run to the account's day, in the SQL transaction that queues them. False if they exceed its quota. */
export async function reserveCount(tx: Database, claim: RunClaim, limits: QuotaLimits): Promise<boolean> {
  const used = { ...claim, bid: 0n }
  const isHeld = await hold(tx, used, claim.account, limits)
  return isHeld && (await hold(tx, used, EVERYBODY, { stroopsPerAccount: limits.dailyBudget }))
}

/** Returns the lines of runs that were never submitted to the days that the runs were queued on. */
export async function releaseCounts(tx: Database, claims: readonly RunClaim[]): Promise<void> {
  // In the order in which every transaction locks them.
  const keyOf = ({ account, day }: RunClaim) => `${account} ${day}`
  const byAccount = claims.toSorted((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1))
  const ofEverybody = claims
    .map((claim) => ({ ...claim, account: EVERYBODY }))
    .toSorted((one, other) => (one.day < other.day ? -1 : 1))
  for (const { account, day, count } of [...byAccount, ...ofEverybody]) {
    const left = sql`${quotas.count} - ${count}`
    await tx.update(quotas).set({ count: left }).where(isOf({ account, day }))
  }
}

const isOf = ({ account, day }: Pick<Claim, 'account' | 'day'>) => and(eq(quotas.account, account), eq(quotas.day, day))

/** What an account has used or reserved of its limits on a day (YYYY-MM-DD, UTC), and when they are reset. */
export async function readUsage(db: Database, of: Pick<Claim, 'account' | 'day'>, limits: QuotaLimits) {
  const stroops = sql<bigint>`${quotas.used} + ${quotas.held}`.mapWith(quotas.used)
  const [row] = await db.select({ count: quotas.count, stroops }).from(quotas).where(isOf(of))
  return {
    transfers: { used: row?.count ?? 0, limit: limits.transfersPerAccount },
    stroops: { used: String(row?.stroops ?? 0n), limit: String(limits.stroopsPerAccount) },
    resetsAt: new Date(Date.parse(of.day) + DAY_MS).toISOString(),
  }
}

const DAY_MS = 86_400_000

/** The refusal for the one of an account's two limits that is reached. */
async function exhausted(tx: Database, claim: Claim, limits: QuotaLimits): Promise<SponsorRefusal> {
  const { transfers, stroops, resetsAt } = await readUsage(tx, claim, limits)
  const isCount = transfers.used + claim.count > transfers.limit
  const { used, limit } = isCount ? transfers : stroops
  const details = { used: String(used), limit: String(limit), resetsAt }
  return sponsorRefused(isCount ? 'quota-transfers' : 'quota-stroops', { details })
}

/**
 * Replaces a reservation with the cost of the transfer, and returns its `count`, at the end of the SQL transaction that ends the
 * transfer.
 */
export async function release(tx: Database, claim: Claim, charged: bigint): Promise<void> {
  const { account, day, bid, count, sponsor } = claim
  const [held, used] = [sql`${quotas.held} - ${bid}`, sql`${quotas.used} + ${charged}`]
  const booked = { held, used, count: sql`${quotas.count} - ${count}` }
  for (const holder of [account, ...sumsOf(claim)]) {
    await tx
      .update(quotas)
      .set(booked)
      .where(isOf({ account: holder, day }))
  }
  if (sponsor === null) return
  const left = { held: sql`${sponsorFloats.held} - ${bid}` }
  await tx.update(sponsorFloats).set(left).where(eq(sponsorFloats.sponsor, sponsor))
}

/**
 * Adds the cost of a transfer that was found on the ledger, for which nothing was reserved, and counts it, in the SQL transaction that
 * records it. No limit applies: the cost has been paid.
 */
export async function charge(tx: Database, claim: Omit<Claim, 'bid' | 'sponsor'>, charged: bigint): Promise<void> {
  const { account, day, count } = claim
  const added = { used: sql`${quotas.used} + ${String(charged)}`, count: sql`${quotas.count} + ${count}` }
  const conflict = { target: [quotas.account, quotas.day], set: added }
  for (const holder of [account, ...sumsOf(claim)]) {
    const row = { account: holder, day, used: charged, count }
    await tx.insert(quotas).values(row).onConflictDoUpdate(conflict)
  }
}
