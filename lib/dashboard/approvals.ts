import { and, eq, exists, inArray } from 'drizzle-orm'
import { runApprovals } from '#drizzle/schema/approvals.ts'
import { payouts } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
import { RUNNABLE } from '#lib/directory/payouts/seals.ts'

export type BatchApproval = NonNullable<Awaited<ReturnType<typeof findApproval>>>

/** Who has signed a run that has not started. Whether that is enough, only the ledger says. */
export async function findApproval(db: Database, batch: string) {
  const { account, signers, updatedAt } = runApprovals
  const isUnpaid = and(eq(payouts.batch, batch), inArray(payouts.status, [...RUNNABLE]))
  const unpaid = db.select({ id: payouts.id }).from(payouts).where(isUnpaid)
  const [approval] = await db
    .select({ account, signers, updatedAt })
    .from(runApprovals)
    .where(and(eq(runApprovals.batch, batch), exists(unpaid)))
  return approval
}
