import type { Database } from '#lib/db/connection.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import type { SignedTransaction } from '#lib/stellar/envelope.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import { wrapInFeeBump } from './fee-bump.ts'
import { checkPayer } from './payer.ts'
import { renewEnvelope } from './record.ts'
import { findTransferOfHash, type RecordedTransfer } from './rows.ts'
import type { Sponsor } from './sponsor.ts'

/** The result codes by which the network refuses an envelope for its signatures. */
const SIGNATURE_CODES = new Set(['txBadAuth', 'txBadAuthExtra'])

/**
 * Replaces a stored envelope that the network refused for its signatures, once the same transaction is posted again with
 * signatures that are valid. The inner hash stays the same.
 */
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
