import { and, eq, inArray, max } from 'drizzle-orm'
import { type SponsoredTransfer, sponsoredTransfers, type TransferStatus } from '#drizzle/schema/transfers.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { organisationOfWallet } from '#lib/directory/payouts/claims.ts'
import type { LedgerRecord } from './ledger-record.ts'
import { claimFor, failFor, resumeFor, settleFor } from './payout-link.ts'
import { type Claim, type QuotaLimits, release, reserve } from './quota.ts'

/** A sponsored transfer as the database keeps it: all that it takes to find out, from anywhere, what became of it. */
export type TransferRecord = SponsoredTransfer

const OPEN = ['held', 'sent'] as const satisfies readonly TransferStatus[]

/** Whether the outcome is still to come. */
export function isOpen(record: Pick<TransferRecord, 'status'>): boolean {
  return record.status === 'held' || record.status === 'sent'
}

export async function findTransfer(db: Database, innerHash: string): Promise<TransferRecord | undefined> {
  const [record] = await db.select().from(sponsoredTransfers).where(eq(sponsoredTransfers.innerHash, innerHash))
  return record
}

/** All transfers whose outcome is open, oldest first. */
export function findOpenTransfers(db: Database): Promise<TransferRecord[]> {
  return db
    .select()
    .from(sponsoredTransfers)
    .where(inArray(sponsoredTransfers.status, OPEN))
    .orderBy(sponsoredTransfers.createdAt)
}

/** The transfers of some organisations whose outcome is open, oldest first. */
export function findOpenTransfersOf(db: Database, organisations: readonly string[]): Promise<TransferRecord[]> {
  return db
    .select()
    .from(sponsoredTransfers)
    .where(and(inArray(sponsoredTransfers.organisation, organisations), inArray(sponsoredTransfers.status, OPEN)))
    .orderBy(sponsoredTransfers.createdAt)
}

/** The latest ledger in which a transfer of `account` is known to stand; 0 without one. */
export async function lastLedgerOf(db: Database, account: string): Promise<number> {
  const [row] = await db
    .select({ ledger: max(sponsoredTransfers.ledger) })
    .from(sponsoredTransfers)
    .where(eq(sponsoredTransfers.account, account))
  return row?.ledger ?? 0
}

export type NewTransfer = Pick<
  TransferRecord,
  | 'innerHash'
  | 'outerHash'
  | 'account'
  | 'recipient'
  | 'sponsor'
  | 'envelope'
  | 'bid'
  | 'maxTime'
  | 'quotaDay'
  | 'sinceLedger'
> &
  Partial<Pick<TransferRecord, 'createdAt'>>

/** What a transfer is recorded with beyond itself. */
export interface RecordingTerms {
  /** the payout that the client names, if it does */
  payoutId?: string
  /** whose quota it counts against, if not the account's own */
  quotaAccount?: string
  /** runs in the transaction that records it, and throws to stop it */
  confirm?: (tx: Database) => Promise<void>
}

/**
 * Writes a transfer down, claims the payout that it pays and reserves what it may cost, in one SQL transaction, before
 * anything is sent. If the same inner transaction has been recorded already, by whomever, nothing is claimed or reserved
 * and that record is the answer.
 * @throws SponsorRefusal when the payout that the client names does not fit, or a quota, the budget or the float does not allow it
 */
export function recordTransfer(
  db: Database,
  transfer: NewTransfer,
  limits: QuotaLimits,
  available: bigint,
  { payoutId, quotaAccount, confirm }: RecordingTerms = {},
): Promise<{ record: TransferRecord; isNew: boolean }> {
  return transact(db, async (tx) => {
    const organisation = await organisationOfWallet(tx, transfer.account)
    const row = { ...transfer, organisation, quotaAccount: quotaAccount ?? null }
    const [written] = await tx.insert(sponsoredTransfers).values(row).onConflictDoNothing().returning()
    if (!written) {
      const earlier = await findTransfer(tx, transfer.innerHash)
      if (!earlier) throw new Error('the outer hash is taken by another transfer')
      return { record: earlier, isNew: false }
    }
    await confirm?.(tx)
    const record = await claimFor(tx, written, payoutId)
    await reserve(tx, claimOf(written), limits, available)
    return { record, isNew: true }
  })
}

/** Notes that the network has been given the envelope at least once, and the code with which it refused it, if so. */
export async function markSent(
  db: Database,
  innerHash: string,
  sent: { at: Date; resultCode: string | null },
): Promise<void> {
  await db
    .update(sponsoredTransfers)
    .set({ status: 'sent', sentAt: sent.at, resultCode: sent.resultCode })
    .where(and(eq(sponsoredTransfers.innerHash, innerHash), inArray(sponsoredTransfers.status, OPEN)))
}

/** Notes that the network will not have a transfer: what it was to pay has failed, and may be sent anew. */
export function rejectTransfer(db: Database, innerHash: string, now: Date): Promise<void> {
  return whileOpen(db, innerHash, (tx, record) => failFor(tx, record, now))
}

/** Notes that a transfer which the network had refused is sent once more. */
export function resumeTransfer(db: Database, innerHash: string, now: Date): Promise<void> {
  return whileOpen(db, innerHash, (tx, record) => resumeFor(tx, record, now))
}

/** Runs `work` if the outcome of a transfer is open, and keeps it open meanwhile. */
function whileOpen(
  db: Database,
  innerHash: string,
  work: (tx: Database, record: TransferRecord) => Promise<void>,
): Promise<void> {
  return transact(db, async (tx) => {
    const [open] = await tx
      .select()
      .from(sponsoredTransfers)
      .where(and(eq(sponsoredTransfers.innerHash, innerHash), inArray(sponsoredTransfers.status, OPEN)))
      .for('no key update')
    if (open) await work(tx, open)
  })
}

/**
 * Gives a transfer its final status, `record` as the ledger has it or null when it can no longer get there, its payout
 * the outcome, and turns its reservation into what it cost, in one SQL transaction. Of several callers one moves it; all get the same row.
 */
export function settleTransfer(
  db: Database,
  innerHash: string,
  record: LedgerRecord | null,
  now: Date,
): Promise<TransferRecord> {
  return transact(db, async (tx) => {
    const [settled] = await tx
      .update(sponsoredTransfers)
      .set(record ? finalFields(record, now) : { status: 'dead', settledAt: now })
      .where(and(eq(sponsoredTransfers.innerHash, innerHash), inArray(sponsoredTransfers.status, OPEN)))
      .returning()
    if (settled) {
      await settleFor(tx, settled, now)
      await release(tx, claimOf(settled), settled.feeCharged)
      return settled
    }
    const earlier = await findTransfer(tx, innerHash)
    if (!earlier) throw new Error('a transfer that was never recorded cannot be settled')
    return earlier
  })
}

/** What a transfer holds of the quotas. */
function claimOf({ account, quotaAccount, quotaDay, sponsor, bid }: TransferRecord): Claim {
  return { account: quotaAccount ?? account, day: quotaDay, sponsor, bid }
}

function finalFields(record: LedgerRecord, now: Date) {
  return {
    status: record.succeeded ? ('success' as const) : ('failed' as const),
    settledAt: now,
    ledgerHash: record.hash,
    ledger: record.ledger,
    feeCharged: record.feeCharged,
    resultCode: record.resultCode,
    contractError: record.contractError,
  }
}
