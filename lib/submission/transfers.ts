import { and, asc, eq, inArray, isNotNull, isNull, lt, max, sql } from 'drizzle-orm'
import { type Envelope, envelopes, type Transfer, transfers } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'

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

/** Nothing is sent again after its end: what is older than this need not be kept (days). */
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
