import { and, eq, sql } from 'drizzle-orm'
import { batches } from '#drizzle/schema/directory.ts'
import { relayLines } from '#drizzle/schema/relay.ts'
import { hasPaidDirectly } from '#lib/archive/direct-payments.ts'
import type { Line } from '#lib/transfers/line.ts'
import { LineError } from './line-error.ts'
import type { Relay } from './relay.ts'
import type { RunLine } from './run-line.ts'

/**
 * Requires that the employer has not paid the payee itself since the batch was created, in a transfer that this database does not
 * have: it may have been this payout, before a restore. The employer decides: what it paid before such a line failed counts as
 * known when it starts the run again.
 * @throws LineError `employer-paid`
 */
export async function requireUnpaidByEmployer(relay: Relay, line: Line, { manifest, owner }: RunLine): Promise<void> {
  // A restored archive lacks what was paid since the backup.
  await relay.archived()
  const db = await relay.database()
  const failed = db
    .select({ at: sql`max(${relayLines.settledAt})` })
    .from(relayLines)
    .where(and(eq(relayLines.payout, line.payout ?? ''), eq(relayLines.error, 'employer-paid')))
  const [batch] = await db
    .select({ since: sql`greatest(${batches.createdAt}, (${failed}))`.mapWith(batches.createdAt) })
    .from(batches)
    .where(eq(batches.id, manifest.batch))
  if (
    !batch ||
    !(await hasPaidDirectly(db, relay.token, { from: owner, to: line.recipient ?? '', since: batch.since }))
  )
    return
  throw new LineError('employer-paid', 'the account has paid the payee itself since the batch was created')
}
