import { and, eq, isNull, sql } from 'drizzle-orm'
import { grants } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { findTransfer } from '#lib/transfers/rows.ts'

/** A grant's row. */
export type Grant = typeof grants.$inferSelect

/** Identifies one grant: an account has at most one at a time, and each new grant has a new `claim`. */
export type Claim = Pick<Grant, 'account' | 'claim'>

const CLOCK = sql`clock_timestamp()`
const after = (seconds: number) => sql`${grants.claimedAt} + make_interval(secs => ${seconds})`

/** A claim without a deposit that is older than this (seconds) belongs to a process that has exited. */
const LEFT_BEHIND = 180

/**
 * Claims a grant of `amount` base units in one statement, so that one of several concurrent claims wins. No grant is
 * claimed while an earlier one is open, or within `coolDown` seconds of a grant that was not returned. The result then has
 * the seconds to wait and the transfer of that grant.
 */
export async function claimGrant(
  db: Database,
  { account, amount, coolDown }: { account: string; amount: bigint; coolDown: number },
): Promise<{ claim: Claim } | { retryAfter: number; transfer: string | null }> {
  const isLeftBehind = sql`${grants.status} = 'claimed' and ${grants.transfer} is null and ${after(LEFT_BEHIND)} <= ${CLOCK}`
  const isCool = sql`${grants.status} in ('granted', 'unknown') and ${after(coolDown)} <= ${CLOCK}`
  const fresh = { status: 'claimed' as const, claimedAt: CLOCK, transfer: null, contractError: null, settledAt: null }
  const [claim] = await db
    .insert(grants)
    .values({ account, amount, claimedAt: CLOCK })
    .onConflictDoUpdate({
      target: grants.account,
      set: { ...fresh, claim: sql`gen_random_uuid()`, amount },
      setWhere: sql`${grants.status} = 'returned' or (${isCool}) or (${isLeftBehind})`,
    })
    .returning({ account: grants.account, claim: grants.claim })
  if (claim) return { claim }
  const [earlier] = await db
    .select({
      seconds: sql<number>`ceil(extract(epoch from ${after(coolDown)} - ${CLOCK}))::int`,
      transfer: grants.transfer,
    })
    .from(grants)
    .where(eq(grants.account, account))
  return { retryAfter: Math.max(1, earlier?.seconds ?? 1), transfer: earlier?.transfer ?? null }
}

/** The hash of the applied deposit, or of the deposit that may still be applied. */
export async function findDepositHash(db: Database, transfer: string): Promise<string | undefined> {
  const deposit = await findTransfer(db, transfer)
  return deposit && (deposit.transfer.hash ?? deposit.envelopes[0]?.innerHash)
}

export async function findGrant(db: Database, { account, claim }: Claim): Promise<Grant | undefined> {
  const [grant] = await db
    .select()
    .from(grants)
    .where(and(eq(grants.account, account), eq(grants.claim, claim)))
  return grant
}

const isUnsigned = ({ account, claim }: Claim) =>
  and(eq(grants.account, account), eq(grants.claim, claim), eq(grants.status, 'claimed'), isNull(grants.transfer))

/**
 * Links a grant to its deposit, in the SQL transaction that records it. False if the grant has already been returned.
 */
export async function linkDeposit(tx: Database, claim: Claim, transfer: string): Promise<boolean> {
  const noted = await tx
    .update(grants)
    .set({ transfer })
    .where(isUnsigned(claim))
    .returning({ account: grants.account })
  return noted.length > 0
}

/** Returns a grant that has no recorded deposit. False if it has one, or has ended. */
export async function returnGrant(db: Database, claim: Claim, contractError: number | null = null): Promise<boolean> {
  const returned = await db
    .update(grants)
    .set({ status: 'returned', contractError, settledAt: CLOCK })
    .where(isUnsigned(claim))
    .returning({ account: grants.account })
  return returned.length > 0
}
