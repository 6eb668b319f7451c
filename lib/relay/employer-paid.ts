import { and, eq, sql } from 'drizzle-orm'
import { payouts } from '#drizzle/schema/directory.ts'
import { relayLines } from '#drizzle/schema/relay.ts'
import { hasPaidDirectly } from '#lib/archive/direct-payments.ts'
import type { Line } from '#lib/transfers/line.ts'
import { LineError } from './line-error.ts'
import type { Relay } from './relay.ts'

/**
 * Requires that the employer has not paid the payee itself since the payout was created, in a transfer that this database does not
 * have: it may have been this payout, before a restore. The employer decides: what it paid before such a line failed counts as
 * known when it starts the run again. The archive shows it as far as it goes back without a gap.
 * @throws LineError `employer-paid`; LedgerError `unavailable` while the archive is catching up
 */
export async function requireUnpaidByEmployer(relay: Relay, line: Line, owner: string): Promise<void> {
  const { payout: id, recipient } = line
  if (id === null || recipient === null) return
  // A restored archive lacks what was paid since the backup.
  await relay.archived()
  const db = await relay.database()
  const failed = db
    .select({ at: sql`max(${relayLines.settledAt})` })
    .from(relayLines)
    .where(and(eq(relayLines.payout, id), eq(relayLines.error, 'employer-paid')))
  const since = sql`greatest(${payouts.createdAt}, (${failed}))`.mapWith(payouts.createdAt)
  const [payout] = await db.select({ since }).from(payouts).where(eq(payouts.id, id))
  if (!payout || !(await hasPaidDirectly(db, relay.token, { from: owner, to: recipient, since: payout.since }))) return
  throw new LineError('employer-paid', 'the account has paid the payee itself since the payout was created')
}
