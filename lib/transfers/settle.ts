import { and, eq, getTableColumns, inArray, sql } from 'drizzle-orm'
import { contractors, payouts } from '#drizzle/schema/directory.ts'
import { type GrantStatus, grants, type Transfer, type TransferStatus, transfers } from '#drizzle/schema/transfers.ts'
import { type Actor, recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { statusesBefore } from '#lib/db/moves.ts'
import { assignments, statement } from '#lib/db/prepared.ts'
import { countPayouts, hasPayout, lockBatches, PAYOUT_MOVES } from '#lib/directory/batches/progress.ts'
import { removeSeals } from '#lib/directory/payouts/seals.ts'
import type { Decision } from './decide.ts'
import { release } from './quota.ts'
import { findEnvelopes, setOf } from './rows.ts'

const ACTOR: Actor = { kind: 'service', sub: 'settlement' }

/**
 * Settles an open transfer in one SQL transaction. Of several callers one settles it, and all get the same row.
 * Undefined, and nothing changes, if `lookedUp` isn't the transfer's current set of envelopes: one that was recorded
 * since the lookup may be the one that was applied.
 */
export function settleDecided(
  db: Database,
  id: string,
  { decision, lookedUp, now }: { decision: Decision; lookedUp: string; now: Date },
): Promise<Transfer | undefined> {
  return transact(db, async (tx) => {
    const [transfer] = await lockTransfer(tx, { id })
    if (!transfer) throw new Error('a transfer that was never recorded cannot be settled')
    if (transfer.status !== 'open') return transfer
    if (setOf(await findEnvelopes(tx, [id])) !== lookedUp) return undefined
    return await settle(tx, id, decision, now)
  })
}

const lockTransfer = statement('lock_transfer', getTableColumns(transfers), (db) =>
  db
    .select()
    .from(transfers)
    .where(eq(transfers.id, sql.placeholder('id')))
    .for('no key update'),
)

/**
 * Writes everything that follows from how a transfer ended, under the lock of its row and in the lock order of
 * `lockBatches`.
 */
export async function settle(tx: Database, id: string, decision: Decision, now: Date): Promise<Transfer> {
  // The transfer.
  const end = 'record' in decision ? { ...columnsOf(decision), closedAt: decision.record.closedAt } : decision
  const [transfer] = await endTransfer(tx, {
    ...UNSET,
    ...end,
    status: decision.status,
    id,
    settledAt: now.toISOString(),
  })
  if (!transfer) throw new Error('a transfer that was never recorded cannot be settled')
  const { kind, account, quotaAccount, quotaDay, organisation, sponsor, bid, applied } = transfer
  const { status } = decision

  // One entry in the audit log: the payout's, if it moved one.
  if (!(await settlePayout(tx, transfer, now))) {
    await recordAudit(tx, now, {
      organisation: organisation ?? undefined,
      actor: ACTOR,
      action: 'transfer.settled',
      subject: applied ?? id,
      detail: { transfer: id, status },
    })
  }

  // The quota, the daily budget and the float. If the end is unknown, the ledger may have charged the whole bid.
  if (sponsor !== null) {
    const charged = status === 'unknown' ? bid : (transfer.feeCharged ?? 0n)
    // A relay's item that expired without ever being submitted doesn't count against its user's transfers.
    // A run's item does not count by its transfers: the run returns what it has not used when it ends.
    const isCounted = quotaAccount !== null && kind !== 'delegated'
    const count = isCounted && status === 'expired' && !(await wasSubmitted(tx, id)) ? 1 : 0
    await release(tx, { kind, account: quotaAccount ?? account, day: quotaDay, sponsor, bid, count }, charged)
  }

  // The faucet's grant that a deposit pays.
  if (sponsor === null) {
    await tx
      .update(grants)
      .set({ status: GRANT_ENDS[status], contractError: transfer.contractError, settledAt: sql`clock_timestamp()` })
      .where(and(eq(grants.transfer, id), eq(grants.status, 'claimed')))
  }
  return transfer
}

/** The columns that only a record has. */
const UNSET = {
  hash: null,
  applied: null,
  ledger: null,
  closedAt: null,
  resultCode: null,
  contractError: null,
  feeCharged: null,
}

const endTransfer = statement('end_transfer', getTableColumns(transfers), (db) =>
  db
    .update(transfers)
    .set({
      ...assignments('status', 'hash', 'applied', 'ledger', 'resultCode', 'contractError', 'feeCharged'),
      appliedAt: sql`to_timestamp(${sql.placeholder('closedAt')})`,
      settledAt: sql`${sql.placeholder('settledAt')}::timestamptz`,
    })
    .where(eq(transfers.id, sql.placeholder('id')))
    .returning(),
)

/**
 * Sets the outcome of a settled transfer on its payout, contractor and batch, and records it in the audit log. Resolves to
 * false, without an entry, if there is no payout, if its outcome stays unknown, or if another transfer pays it now.
 */
export async function settlePayout(tx: Database, transfer: Transfer, now: Date): Promise<boolean> {
  const { id, payout } = transfer
  if (payout === null) return false
  const outcome = payoutOutcome(transfer)
  const isPayout = eq(payouts.id, payout)
  if (outcome.status === 'paid') {
    await tx
      .update(contractors)
      .set({ lastPaidAt: sql`greatest(${contractors.lastPaidAt}, ${now.toISOString()}::timestamptz)` })
      .where(inArray(contractors.id, tx.select({ id: payouts.contractor }).from(payouts).where(isPayout)))
  }
  const locked = await lockBatches(tx, hasPayout(tx, isPayout))
  // A payout whose transfer is unknown stays pending.
  const from = outcome.status === 'pending' ? ['pending' as const] : statusesBefore(PAYOUT_MOVES, outcome.status)
  const [moved] = await tx
    .update(payouts)
    .set({ error: null, ...outcome, ...(outcome.status === 'paid' && { paidAt: now }) })
    .where(and(isPayout, eq(payouts.transfer, id), inArray(payouts.status, from)))
    .returning({ organisation: payouts.organisation, encryptedAmount: payouts.encryptedAmount })
  if (moved && outcome.status === 'paid') await removeSeals(tx, [{ ...moved, id: payout }])
  if (!moved || outcome.status === 'pending') return false
  await recordAudit(tx, now, {
    organisation: moved.organisation,
    actor: ACTOR,
    action: `payout.${outcome.status}`,
    subject: payout,
    detail: { transfer: id },
  })
  await countPayouts(tx, locked, outcome.status === 'paid' ? { settled: 1 } : { failed: 1 }, { actor: ACTOR, now })
  return true
}

async function wasSubmitted(tx: Database, id: string): Promise<boolean> {
  return (await findEnvelopes(tx, [id])).some(({ firstSentAt }) => firstSentAt !== null)
}

/** The columns of a transfer that come from the ledger's record. */
export function columnsOf({
  record,
  feeCharged,
}: Pick<Extract<Decision, { record: unknown }>, 'record' | 'feeCharged'>) {
  const { hash, applied, ledger, closedAt, resultCode, contractError } = record
  return { hash, applied, ledger, appliedAt: new Date(closedAt * 1000), resultCode, contractError, feeCharged }
}

const GRANT_ENDS = {
  succeeded: 'granted',
  failed: 'returned',
  expired: 'returned',
  unknown: 'unknown',
} as const satisfies Record<Exclude<TransferStatus, 'open'>, GrantStatus>

/** The state of a payout after its transfer. `pending`: only the employer can end a payout whose transfer is unknown. */
type PayoutOutcome = { status: 'paid'; txHash: string } | { status: 'failed' | 'pending'; error: string }

function payoutOutcome({ status, hash, resultCode, contractError }: Transfer): PayoutOutcome {
  if (status === 'succeeded' && hash) return { status: 'paid', txHash: hash }
  if (status === 'expired' && resultCode !== null) {
    return { status: 'failed', error: 'another transaction of this account was applied: check whether it paid' }
  }
  if (status === 'expired') return { status: 'failed', error: 'the transfer expired before it reached the ledger' }
  if (status === 'unknown') {
    return {
      status: 'pending',
      error: 'the history of the ledger no longer shows whether the transfer was paid: ask the payee, then cancel it',
    }
  }
  const contract = contractError === null ? '' : `, contract error ${contractError}`
  return { status: 'failed', error: `the transfer failed on the ledger: ${resultCode}${contract}` }
}
