import { and, desc, eq, gt, inArray, or, sql } from 'drizzle-orm'
import { transfers } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { findTransfer } from '#lib/transfers/rows.ts'

/** A deposit for which an account has to wait before it gets another one. */
export interface EarlierGrant {
  /** the id of its transfer */
  transfer: string
  /** seconds, at least one */
  retryAfter: number
}

/**
 * The deposit for which an account has to wait: one that is open, or the latest of the last `coolDown` seconds, by the
 * database's clock, that was applied or may have been.
 */
export async function findEarlierGrant(
  db: Database,
  { account, coolDown }: { account: string; coolDown: number },
): Promise<EarlierGrant | undefined> {
  const { id, kind, recipient, status, createdAt } = transfers
  const until = sql`${createdAt} + make_interval(secs => ${coolDown})`
  const [earlier] = await db
    .select({
      transfer: id,
      seconds: sql<number>`ceil(extract(epoch from ${until} - clock_timestamp()))::int`,
    })
    .from(transfers)
    .where(
      and(
        eq(recipient, account),
        eq(kind, 'deposit'),
        inArray(status, ['open', 'succeeded', 'unknown']),
        or(eq(status, 'open'), gt(until, sql`clock_timestamp()`)),
      ),
    )
    .orderBy(desc(createdAt))
    .limit(1)
  return earlier && { transfer: earlier.transfer, retryAfter: Math.max(1, earlier.seconds) }
}

/** The hash of the applied deposit, or of the deposit that may still be applied. */
export async function findDepositHash(db: Database, transfer: string): Promise<string | undefined> {
  const deposit = await findTransfer(db, transfer)
  return deposit && (deposit.transfer.hash ?? deposit.envelopes[0]?.innerHash)
}
