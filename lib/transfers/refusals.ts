import { and, eq, isNull, lt, sql } from 'drizzle-orm'
import { refusals } from '#drizzle/schema/audit.ts'
import { refusalCounts } from '#drizzle/schema/counts.ts'
import { contractors } from '#drizzle/schema/directory.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transactFor } from '#lib/db/connection.ts'
import { organisationOfWallet } from '#lib/directory/payouts/claims.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import type { RefusalReason } from '#lib/refusal/sponsor-refusal.ts'
import type { SignedTransaction } from '#lib/stellar/node/envelope.ts'

/**
 * Logs a refusal and counts it by account, hour and reason. The first of each hour is also added to the audit log. It
 * never throws, so that the caller gets the refusal even while the database is unreachable.
 */
export async function noteRefusal(
  db: Database,
  inner: SignedTransaction,
  { reason, to }: { reason: RefusalReason; to?: string | undefined },
  now: Date,
): Promise<void> {
  const { hashHex: hash, source: account } = inner
  log('info', 'sponsorship refused', { hash, account, reason })
  try {
    await transactFor(db, account, async (tx) => {
      const [noted] = await tx
        .insert(refusals)
        .values({ account, hour: now.toISOString().slice(0, 13), reason, lastHash: hash, lastAt: now })
        .onConflictDoUpdate({
          target: [refusals.account, refusals.hour, refusals.reason],
          set: { count: sql`${refusals.count} + 1`, lastHash: hash, lastAt: now },
        })
        .returning({ count: refusals.count })
      if (noted?.count !== 1) return
      const organisation = (await organisationOfWallet(tx, account)) ?? undefined
      const { id, address, deletedAt } = contractors
      const isPayee = and(eq(contractors.organisation, organisation ?? ''), eq(address, to ?? ''), isNull(deletedAt))
      const [payee] = organisation && to ? await tx.select({ contractor: id }).from(contractors).where(isPayee) : []
      await recordAudit(tx, now, {
        organisation,
        actor: { kind: 'ledger', sub: account },
        action: 'transfer.refused',
        subject: hash,
        // The contractor that a refused transfer was to pay, if it belongs to the organisation.
        detail: { reason, ...payee },
      })
      await countRefusal(tx, reason)
    })
  } catch (error) {
    log('error', 'audit', { hash, failure: describeFailure(error) })
  }
}

/** Counts an entry of the audit log for the metrics, in the SQL transaction that writes it. */
export async function countRefusal(tx: Database, reason: string): Promise<void> {
  await tx.execute(sql`INSERT INTO ${refusalCounts} AS counts (reason, count) VALUES (${reason}, 1)
      ON CONFLICT (reason) DO UPDATE SET count = counts.count + 1`)
}

/** How long counts of refusals are kept (days); their rows in the audit log stay, and how many a round deletes at most. */
const KEPT_DAYS = 30
const MAX_DELETED = 1_000

/** Deletes the oldest of the counts that are older. Resolves to how many rows it deleted. */
export async function purgeRefusals(db: Database, now: Date): Promise<number> {
  const before = new Date(now.getTime() - KEPT_DAYS * 86_400_000)
  const { account, hour, reason } = refusals
  const isOld = lt(refusals.lastAt, before)
  const key = { account, hour, reason }
  const oldest = db.select(key).from(refusals).where(isOld).orderBy(refusals.lastAt).limit(MAX_DELETED)
  const isOldest = sql`(${account}, ${hour}, ${reason}) in ${oldest}`
  return (await db.delete(refusals).where(isOldest).returning({ hour })).length
}
