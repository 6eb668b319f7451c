import { and, eq } from 'drizzle-orm'
import { envelopes, transfers } from '#drizzle/schema/transfers.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import type { SignedTransaction } from '#lib/stellar/node/envelope.ts'
import { wrapInFeeBump } from './fee-bump.ts'
import { type Envelope, findTransferOfHash, type RecordedTransfer } from './rows.ts'
import type { Sponsor } from './sponsor.ts'
import { checkPayer } from './verification.ts'

/** The result codes by which the network refuses an envelope for its signatures. */
const SIGNATURE_CODES = new Set(['txBadAuth', 'txBadAuthExtra'])

/** Replaces a stored envelope that the network refused for its signatures, once the transaction is posted again with valid ones. */
export async function renewSignatures(
  db: Database,
  { keypair, network, tracker }: Sponsor,
  inner: SignedTransaction,
  existing: RecordedTransfer,
): Promise<RecordedTransfer> {
  const stored = existing.envelopes.find(({ innerHash }) => innerHash === inner.hashHex)
  if (!stored || existing.transfer.status !== 'open' || !SIGNATURE_CODES.has(stored.resultCode ?? '')) return existing
  const bump = wrapInFeeBump(inner, keypair, network.passphrase)
  if (bump.hash === stored.outerHash || existing.transfer.sponsor !== keypair.publicKey()) return existing
  try {
    checkPayer(inner, await tracker.readAccount(inner.source))
  } catch (error) {
    // These signatures aren't valid either, or the ledger can't be reached: the stored envelope stays.
    if (error instanceof Refusal || error instanceof LedgerError) return existing
    throw error
  }
  await renewEnvelope(db, stored, { outerHash: bump.hash, signed: bump.envelope })
  return (await findTransferOfHash(db, inner.hashHex)) ?? existing
}

/**
 * Replaces the signatures of a refused envelope under the lock of its transfer, unless that has ended, or another request was
 * first. The outer hash changes with them, so a lookup that began before cannot decide the transfer.
 */
export async function renewEnvelope(
  db: Database,
  { innerHash, outerHash, transfer }: Envelope,
  renewed: { outerHash: string; signed: string },
): Promise<void> {
  await transact(db, async (tx) => {
    if (outerHash === null) return
    const isOpen = and(eq(transfers.id, transfer), eq(transfers.status, 'open'))
    const open = await tx.update(transfers).set({ lookedUpLedger: null }).where(isOpen).returning({ id: transfers.id })
    if (open.length === 0) return
    const fresh = { ...renewed, resultCode: null, sentLedger: null, refusedLedger: null }
    const isIt = and(eq(envelopes.innerHash, innerHash), eq(envelopes.outerHash, outerHash))
    await tx.update(envelopes).set(fresh).where(isIt)
  })
}
