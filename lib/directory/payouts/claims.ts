import { and, asc, desc, eq, inArray, lt, type SQL } from 'drizzle-orm'
import { batches, identities, type PayoutStatus, payouts } from '#drizzle/schema/directory.ts'
import { type Actor, recordAudit } from '#lib/db/audit-log.ts'
import type { Database } from '#lib/db/connection.ts'
import { statusesBefore } from '#lib/db/moves.ts'
import { countPayouts, holdBatches, PAYOUT_MOVES } from '../batch-progress.ts'
import { isId } from '../ids.ts'

/** The organisation whose payouts a wallet (G…) pays; null if the wallet belongs to none. */
export async function organisationOfWallet(db: Database, account: string): Promise<string | null> {
  const [wallet] = await db
    .select({ organisation: identities.organisation })
    .from(identities)
    .where(and(eq(identities.kind, 'ledger'), eq(identities.sub, account)))
  return wallet?.organisation ?? null
}

/** A transfer, and what is known of the payout that it pays. */
export interface PayoutClaim {
  /** id of the transfer */
  transfer: string
  /** organisation of the wallet that pays */
  organisation: string
  /** G… or C… that is paid */
  recipient: string
  /** the payout that the client names, if it does */
  payoutId: string | undefined
  /** only payouts that were made before this moment fit */
  createdBefore?: Date
}

const ACTOR: Actor = { kind: 'service', sub: 'sponsor' }

/** The order of choice among several payouts that fit: the oldest `ready` one, else the newest `failed` one. */
const SENDABLE = [
  { status: 'ready', order: asc },
  { status: 'failed', order: desc },
] as const satisfies { status: PayoutStatus; order: unknown }[]

/**
 * Moves the payout that a transfer pays to `pending`: of the wallet's organisation, in a locked batch, to the
 * transfer's recipient; the oldest that is `ready`, else the newest that is `failed`, or the one that is named. Answers
 * with its id, or undefined when none fits. Runs inside the SQL transaction that records the transfer.
 */
export async function claimPayout(
  { db: tx, now }: { db: Database; now: Date },
  { transfer, organisation, recipient, payoutId, createdBefore }: PayoutClaim,
): Promise<string | undefined> {
  if (payoutId !== undefined && !isId(payoutId)) return undefined
  const fits = and(
    eq(payouts.organisation, organisation),
    eq(payouts.address, recipient),
    inArray(payouts.status, statusesBefore(PAYOUT_MOVES, 'pending')),
    createdBefore && lt(payouts.createdAt, createdBefore),
    payoutId === undefined ? undefined : eq(payouts.id, payoutId),
  )
  // Every candidate's batch is locked, so that no other transfer can claim the payout that is chosen here.
  const candidates = tx.select({ batch: payouts.batch }).from(payouts).where(fits)
  const held = await holdBatches(tx, inArray(batches.id, candidates))
  const isHeld = inArray(
    payouts.batch,
    held.map(({ id }) => id),
  )
  for (const { status, order } of SENDABLE) {
    const [candidate] = await tx
      .select({ id: payouts.id, batch: payouts.batch })
      .from(payouts)
      .where(and(fits, eq(payouts.status, status), isHeld))
      .orderBy(order(payouts.createdAt), order(payouts.sequence))
      .limit(1)
    if (!candidate) continue
    const { id } = candidate
    const [moved] = await tx
      .update(payouts)
      .set({ status: 'pending', transfer, error: null })
      .where(and(eq(payouts.id, id), eq(payouts.status, status)))
      .returning({ id: payouts.id })
    if (!moved) continue
    const detail = { transfer }
    await recordAudit(tx, now, { organisation, actor: ACTOR, action: 'payout.claimed', subject: id, detail })
    const batch = held.filter((one) => one.id === candidate.batch)
    await countPayouts(tx, batch, { failed: status === 'failed' ? -1 : 0, sending: true }, { actor: ACTOR, now })
    return id
  }
  return undefined
}

/** The condition for the batch of a payout. */
export function batchOf(tx: Database, payout: string): SQL {
  return inArray(batches.id, tx.select({ batch: payouts.batch }).from(payouts).where(eq(payouts.id, payout)))
}
