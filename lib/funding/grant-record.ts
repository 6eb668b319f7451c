import { and, asc, eq, inArray, sql } from 'drizzle-orm'
import { faucetGrants, type GrantStatus } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'

/** A grant as the database keeps it: all that it takes to find out, from anywhere, what became of it. */
export type Grant = typeof faucetGrants.$inferSelect

/** One grant among all that an account ever had. */
export type Claim = Pick<Grant, 'account' | 'claim'>

/** A deposit that is signed for a grant, all of it. */
export type SignedDeposit = {
  [Field in 'faucet' | 'envelope' | 'hash' | 'sequence' | 'maxTime' | 'sinceLedger']: NonNullable<Grant[Field]>
}

/** How a grant ended, and what the network said about it. */
export interface GrantEnding {
  status: Extract<GrantStatus, 'granted' | 'returned' | 'lost'>
  resultCode?: string
  contractError?: number | null
}

const OPEN = ['claimed', 'signed'] as const satisfies readonly GrantStatus[]

const UNSIGNED = { faucet: null, envelope: null, hash: null, sequence: null, maxTime: null, sinceLedger: null }

const CLOCK = sql`clock_timestamp()`
const coolDownEnd = (seconds: number) => sql`${faucetGrants.claimedAt} + make_interval(secs => ${seconds})`

/**
 * Claims a grant of `amount` base units, in one statement: of many at once one wins. Not while an earlier one is open,
 * nor within `coolDown` seconds of the last that was not returned; then it is the seconds after which to ask again.
 */
export async function claimGrant(
  db: Database,
  { account, amount, coolDown }: { account: string; amount: bigint; coolDown: number },
): Promise<{ claim: Claim } | { retryAfter: number }> {
  const [claim] = await db
    .insert(faucetGrants)
    .values({ account, amount, claimedAt: CLOCK })
    .onConflictDoUpdate({
      target: faucetGrants.account,
      set: {
        ...UNSIGNED,
        claim: sql`gen_random_uuid()`,
        amount,
        status: 'claimed',
        claimedAt: CLOCK,
        resultCode: null,
        contractError: null,
        settledAt: null,
      },
      setWhere: sql`${faucetGrants.status} = 'returned' or (${faucetGrants.status} in ('granted', 'lost') and ${coolDownEnd(coolDown)} <= ${CLOCK})`,
    })
    .returning({ account: faucetGrants.account, claim: faucetGrants.claim })
  if (claim) return { claim }
  const [earlier] = await db
    .select({ seconds: sql<number>`ceil(extract(epoch from ${coolDownEnd(coolDown)} - ${CLOCK}))::int` })
    .from(faucetGrants)
    .where(eq(faucetGrants.account, account))
  return { retryAfter: Math.max(1, earlier?.seconds ?? 1) }
}

/** All grants whose outcome is open, oldest first. */
export function findOpenGrants(db: Database): Promise<Grant[]> {
  return db
    .select()
    .from(faucetGrants)
    .where(inArray(faucetGrants.status, OPEN))
    .orderBy(asc(faucetGrants.claimedAt), asc(faucetGrants.account))
}

/** The last grants of these accounts. */
export function findGrants(db: Database, accounts: string[]): Promise<Grant[]> {
  return db.select().from(faucetGrants).where(inArray(faucetGrants.account, accounts))
}

/** Writes down the deposit before it is sent. False when the grant has been given back, or signed, meanwhile. */
export async function signGrant(db: Database, claim: Claim, deposit: SignedDeposit): Promise<boolean> {
  return await move(db, claim, 'claimed', { ...deposit, status: 'signed' })
}

/** Takes a signature back that can provably never apply: the grant waits for another. */
export async function unsignGrant(db: Database, grant: Grant): Promise<boolean> {
  return await move(db, grant, 'signed', { ...UNSIGNED, status: 'claimed' })
}

/** Ends a grant for which nothing is signed. False when something is. */
export async function returnClaim(db: Database, claim: Claim, why: Omit<GrantEnding, 'status'> = {}): Promise<boolean> {
  return await move(db, claim, 'claimed', { ...why, status: 'returned', settledAt: CLOCK })
}

/** Ends a grant whose deposit is signed. Of several callers one moves it. */
export async function settleGrant(db: Database, grant: Grant, ending: GrantEnding): Promise<boolean> {
  return await move(db, grant, 'signed', { ...ending, settledAt: CLOCK })
}

/** Notes the code with which the network refused the deposit; it may still come to apply. */
export async function noteRefusal(db: Database, grant: Grant, resultCode: string): Promise<boolean> {
  return await move(db, grant, 'signed', { resultCode })
}

async function move(
  db: Database,
  { account, claim, ...signed }: Claim & { hash?: string | null },
  from: GrantStatus,
  fields: Parameters<ReturnType<Database['update']>['set']>[0],
): Promise<boolean> {
  const moved = await db
    .update(faucetGrants)
    .set(fields)
    .where(
      and(
        eq(faucetGrants.account, account),
        eq(faucetGrants.claim, claim),
        eq(faucetGrants.status, from),
        // A grant may be signed anew once a signature is void: what is known of one says nothing of the other.
        from === 'signed' && signed.hash ? eq(faucetGrants.hash, signed.hash) : undefined,
      ),
    )
    .returning({ account: faucetGrants.account })
  return moved.length > 0
}
