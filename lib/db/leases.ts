import { and, eq, sql } from 'drizzle-orm'
import { leases } from '#drizzle/schema/transfers.ts'
import { type Database, transact } from './connection.ts'

/** The right to use the sequence numbers of an account: one holder at a time, in all processes of one database. */
export interface Lease {
  /** G-address */
  account: string
  /** rises with every taking: a record made under an older one is made by somebody who has lost the lease */
  token: number
}

// The clock is the database's own, which all processes share; that of the statement, since now() stands still in a
// transaction.
const CLOCK = sql`clock_timestamp()`
const later = (seconds: number) => sql`${CLOCK} + make_interval(secs => ${seconds})`

/**
 * Takes the lease of `account` for `holder` (a name for the log and the operator), unless somebody has it, be it of
 * the same name. It ends by itself after `seconds`.
 */
export async function takeLease(
  db: Database,
  account: string,
  { holder, seconds }: { holder: string; seconds: number },
): Promise<Lease | undefined> {
  const [taken] = await db
    .insert(leases)
    .values({ account, holder, until: later(seconds), token: 1 })
    .onConflictDoUpdate({
      target: leases.account,
      set: { holder, until: later(seconds), token: sql`${leases.token} + 1` },
      setWhere: sql`${leases.until} <= ${CLOCK}`,
    })
    .returning({ account: leases.account, token: leases.token })
  return taken
}

/** Holds on to a lease for `seconds` from now. False: it is lost, and whoever held it must not send any more. */
export async function renewLease(db: Database, lease: Lease, seconds: number): Promise<boolean> {
  const renewed = await db
    .update(leases)
    .set({ until: later(seconds) })
    .where(isHeld(lease))
    .returning({ token: leases.token })
  return renewed.length > 0
}

/** Lets others have it at once. A lease that is lost already is left alone. */
export async function releaseLease(db: Database, lease: Lease): Promise<void> {
  await db.update(leases).set({ until: CLOCK }).where(isHeld(lease))
}

/**
 * Runs `work` in one SQL transaction in which nobody can take the lease: what it writes down, it writes as the holder.
 * Undefined, and nothing done, if the lease is lost.
 */
export function underLease<Result>(
  db: Database,
  lease: Lease,
  work: (tx: Database) => Promise<Result>,
): Promise<Result | undefined> {
  return transact(db, async (tx) => {
    const [held] = await tx.select({ token: leases.token }).from(leases).where(isHeld(lease)).for('update')
    return held && (await work(tx))
  })
}

const isHeld = ({ account, token }: Lease) =>
  and(eq(leases.account, account), eq(leases.token, token), sql`${leases.until} > ${CLOCK}`)
