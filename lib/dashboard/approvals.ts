import { eq } from 'drizzle-orm'
import { runApprovals } from '#drizzle/schema/approvals.ts'
import type { Database } from '#lib/db/connection.ts'

export type BatchApproval = NonNullable<Awaited<ReturnType<typeof findApproval>>>

/** Who has signed a run that has not started. Whether that is enough, only the ledger says. */
export async function findApproval(db: Database, batch: string) {
  const { account, signers, updatedAt } = runApprovals
  const [approval] = await db
    .select({ account, signers, updatedAt })
    .from(runApprovals)
    .where(eq(runApprovals.batch, batch))
  return approval
}
