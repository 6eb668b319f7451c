import { and, asc, eq, inArray, isNotNull, isNull, lt, max, sql } from 'drizzle-orm'
import { type Envelope, envelopes, type Transfer, transfers } from '#drizzle/schema/transfers.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import type { Decision } from './decide.ts'

export type { Envelope, Transfer } from '#drizzle/schema/transfers.ts'

/** A transfer with all that competes for it: all that it takes to find out, from anywhere, what became of it. */
export interface RecordedTransfer {
  transfer: Transfer
  envelopes: Envelope[]
}

export async function findTransfer(db: Database, id: string): Promise<RecordedTransfer | undefined> {
  const [transfer] = await db.select().from(transfers).where(eq(transfers.id, id))
  return transfer && { transfer, envelopes: await findEnvelopes(db, id) }
}

/** The envelopes of a transfer, in the order in which they were recorded. */
export function findEnvelopes(db: Database, transfer: string): Promise<Envelope[]> {
  return db
    .select()
    .from(envelopes)
    .where(eq(envelopes.transfer, transfer))
    .orderBy(asc(envelopes.recordedAt), asc(envelopes.innerHash))
}

/** The transfer that an inner transaction (64 hex digits) is recorded for. */
export async function findTransferOfHash(db: Database, innerHash: string): Promise<RecordedTransfer | undefined> {
  const [found] = await db
    .select({ transfer: envelopes.transfer })
    .from(envelopes)
    .where(eq(envelopes.innerHash, innerHash))
  return found && (await findTransfer(db, found.transfer))
}

/** The one open transfer that an account can have. */
export async function findOpenTransfer(db: Database, account: string): Promise<Transfer | undefined> {
  const [open] = await db
    .select()
    .from(transfers)
    .where(and(eq(transfers.account, account), eq(transfers.status, 'open')))
  return open
}

/** All open transfers, oldest first. */
export function findOpenTransfers(db: Database): Promise<Transfer[]> {
  return db.select().from(transfers).where(eq(transfers.status, 'open')).orderBy(transfers.createdAt)
}

/** The open transfers of some organisations, oldest first. */
export function findOpenTransfersOf(db: Database, organisations: readonly string[]): Promise<Transfer[]> {
  return db
    .select()
    .from(transfers)
    .where(and(inArray(transfers.organisation, organisations), eq(transfers.status, 'open')))
    .orderBy(transfers.createdAt)
}

/** The latest ledger in which a transfer of `account` is known to stand; 0 without one. */
export async function lastLedgerOf(db: Database, account: string): Promise<number> {
  const [row] = await db
    .select({ ledger: max(transfers.ledger) })
    .from(transfers)
    .where(and(eq(transfers.account, account), isNotNull(transfers.ledger)))
  return row?.ledger ?? 0
}

/**
 * Notes that the network was given an envelope, and the code with which it refused it, null if it did not. The outer hash
 * tells it from the same transaction with renewed signatures.
 */
export async function noteSent(
  db: Database,
  { innerHash, outerHash }: Pick<Envelope, 'innerHash' | 'outerHash'>,
  { at, resultCode }: { at: Date; resultCode: string | null },
): Promise<void> {
  const firstSentAt = sql`coalesce(${envelopes.firstSentAt}, ${at.toISOString()}::timestamptz)`
  const isSame = outerHash === null ? isNull(envelopes.outerHash) : eq(envelopes.outerHash, outerHash)
  await db
    .update(envelopes)
    .set({ firstSentAt, lastSentAt: at, resultCode })
    .where(and(eq(envelopes.innerHash, innerHash), isSame))
}

/** How long the signed envelopes of an ended transfer are kept, in days. None is ever sent again. */
const KEPT_DAYS = 30

/** Erases the signed envelopes of transfers that have long ended; all else about them stays. */
export async function eraseOldEnvelopes(db: Database, now: Date): Promise<number> {
  const before = new Date(now.getTime() - KEPT_DAYS * 86_400_000)
  const ended = db.select({ id: transfers.id }).from(transfers).where(lt(transfers.settledAt, before))
  const erased = await db
    .update(envelopes)
    .set({ signed: null })
    .where(and(isNotNull(envelopes.signed), lt(envelopes.recordedAt, before), inArray(envelopes.transfer, ended)))
    .returning({ innerHash: envelopes.innerHash })
  return erased.length
}

/**
 * Moves the quota, float, payout or grant of a transfer that is settled. It runs in the SQL transaction that settles the
 * transfer, under the lock of its row. `lib/server` hands it in, since those belong to domains above this one.
 */
export type Books = (tx: Database, settled: Transfer, now: Date) => Promise<void>

/** Names the set of envelopes that a decision rests on. */
export const setOf = (envelopes: readonly Pick<Envelope, 'innerHash' | 'outerHash'>[]): string =>
  envelopes
    .map(({ innerHash, outerHash }) => `${innerHash} ${outerHash ?? ''}`)
    .sort()
    .join(', ')

/**
 * Gives a transfer its final status, and the books their move, in one SQL transaction. Of several callers one moves it; all
 * get the same row. Undefined, and nothing changes, unless `lookedUp` names the transfer's envelopes as they are now: one
 * that was recorded since the look-up may be the one that stands on the ledger.
 */
export function settleTransfer(
  db: Database,
  id: string,
  { decision, lookedUp, now, books }: { decision: Decision; lookedUp: string; now: Date; books: Books },
): Promise<Transfer | undefined> {
  return transact(db, async (tx) => {
    const [transfer] = await tx.select().from(transfers).where(eq(transfers.id, id)).for('no key update')
    if (!transfer) throw new Error('a transfer that was never recorded cannot be settled')
    if (transfer.status !== 'open') return transfer
    if (setOf(await findEnvelopes(tx, id)) !== lookedUp) return undefined
    const [settled] = await tx
      .update(transfers)
      .set({ status: decision.status, settledAt: now, ...('record' in decision ? fieldsOf(decision) : {}) })
      .where(eq(transfers.id, id))
      .returning()
    if (!settled) throw new Error('a transfer that was never recorded cannot be settled')
    await books(tx, settled, now)
    return settled
  })
}

/** The columns of a row that say which record decided it. */
export function fieldsOf({
  record,
  feeCharged,
}: Pick<Extract<Decision, { record: unknown }>, 'record' | 'feeCharged'>) {
  const { hash, applied, ledger, resultCode, contractError } = record
  return { hash, applied, ledger, resultCode, contractError, feeCharged }
}
