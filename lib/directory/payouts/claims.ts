import { and, asc, desc, eq, inArray, isNotNull, lt, ne, or } from 'drizzle-orm'
import { identities, organisations, type PayoutStatus, payouts } from '#drizzle/schema/directory.ts'
import type { Actor } from '#lib/db/audit-log.ts'
import type { Database } from '#lib/db/connection.ts'
import { countPayouts, hasPayout, lockBatches } from '../batches/progress.ts'
import { isId } from '../ids.ts'

/** Returns the organisation whose payouts the wallet `account` (G…) pays, or null. */
export async function organisationOfWallet(db: Database, account: string): Promise<string | null> {
  const [wallet] = await db
    .select({ organisation: organisations.id })
    .from(identities)
    .innerJoin(organisations, eq(organisations.id, identities.organisation))
    .where(and(eq(identities.kind, 'ledger'), eq(identities.sub, account)))
  return wallet?.organisation ?? null
}

export interface PayoutClaim {
  /** id of the transfer */
  transfer: string
  /** the paying wallet's organisation */
  organisation: string
  /** the transfer's recipient, G… or C… */
  recipient: string
  /** the payout that the client names, if any */
  payoutId: string | undefined
  /** whether the payment was made before a restore: the payout may be a draft again, or pending without a transfer */
  wasLost?: boolean
  /** only payouts created before this moment match */
  createdBefore?: Date
}

export const SPONSOR: Actor = { kind: 'service', sub: 'sponsor' }

/** Several payouts may match: the oldest `ready` one is chosen, else the newest `failed` one. */
const PREFERENCE = [
  { status: 'ready', order: asc },
  { status: 'failed', order: desc },
] as const satisfies { status: PayoutStatus; order: unknown }[]

/** The other statuses that a payout may have if its payment was lost. A `pending` one must have an error: no open transfer pays it. */
const LOST = [
  { status: 'draft', order: asc },
  { status: 'pending', order: asc },
] as const satisfies { status: PayoutStatus; order: unknown }[]

/**
 * Moves the payout that a transfer pays to `pending` and returns its id, or undefined if none matches. The payout
 * belongs to the wallet's organisation, has the transfer's recipient as its address, is in a locked batch unless its
 * payment was lost, and is the named one or the first by PREFERENCE. Call it inside the SQL transaction that records the transfer,
 * whose entry in the audit log names the payout.
 */
export async function claimPayout(
  { db: tx, now }: { db: Database; now: Date },
  { transfer, organisation, recipient, payoutId, createdBefore, wasLost = false }: PayoutClaim,
): Promise<string | undefined> {
  if (payoutId !== undefined && !isId(payoutId)) return undefined
  const preference = wasLost ? [...PREFERENCE, ...LOST] : PREFERENCE
  const isMatch = and(
    eq(payouts.organisation, organisation),
    eq(payouts.address, recipient),
    inArray(
      payouts.status,
      preference.map(({ status }) => status),
    ),
    or(ne(payouts.status, 'pending'), isNotNull(payouts.error)),
    createdBefore && lt(payouts.createdAt, createdBefore),
    payoutId === undefined ? undefined : eq(payouts.id, payoutId),
  )
  // Locks the batch of every candidate, so no concurrent transfer can claim the chosen payout.
  const locked = await lockBatches(tx, hasPayout(tx, isMatch))
  const isLocked = inArray(
    payouts.batch,
    locked.map(({ id }) => id),
  )
  for (const { status, order } of preference) {
    const [candidate] = await tx
      .select({ id: payouts.id, batch: payouts.batch })
      .from(payouts)
      .where(and(isMatch, eq(payouts.status, status), isLocked))
      .orderBy(order(payouts.createdAt), order(payouts.sequence))
      .limit(1)
    if (!candidate) continue
    const { id } = candidate
    const [claimed] = await tx
      .update(payouts)
      .set({ status: 'pending', transfer, error: null })
      .where(and(isMatch, eq(payouts.id, id), eq(payouts.status, status)))
      .returning({ id: payouts.id })
    if (!claimed) continue
    const batch = locked.filter((one) => one.id === candidate.batch)
    await countPayouts(tx, batch, { failed: status === 'failed' ? -1 : 0, sending: true }, { actor: SPONSOR, now })
    return id
  }
  return undefined
}
