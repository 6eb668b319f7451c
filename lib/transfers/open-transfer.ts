import { eq } from 'drizzle-orm'
import { type Transfer, transfers } from '#drizzle/schema/transfers.ts'
import { readClock } from '#lib/db/clock.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { sponsorRefused } from '#lib/refusal/sponsor-refusal.ts'
import type { SignedCall } from '#lib/wallet/transaction.ts'
import { quotaDay } from './quota.ts'
import {
  addEnvelope,
  beginTransfer,
  findEnvelopes,
  findTransferOfHash,
  isSameCall,
  lockOpenTransfer,
  maxTimeOf,
  type NewEnvelope,
  type NewTransfer,
  type RecordedTransfer,
} from './rows.ts'
import { refuseForeignNetwork } from './stop.ts'

/** The maximum number of envelopes that compete for one transfer: each is one more to look up. */
const MAX_ENVELOPES = 3

/** The first to commit creates the account's one open transfer; the others join it, unless it has been settled. */
const ATTEMPTS = 5

/**
 * The result of recording an envelope. `begun`: it started a new transfer. `joined`: it competes for the open transfer of
 * its number, which now reserves `extra` stroops more. `known`: it was recorded before.
 */
export type Recording = RecordedTransfer & ({ kind: 'begun' | 'joined'; extra: bigint } | { kind: 'known' })

/**
 * Records an envelope before it is submitted, inside the caller's SQL transaction. An account has at most one open
 * transfer. An envelope with the same number, call and recipient joins it under its row lock, which settlement also takes.
 * @throws SponsorRefusal `another-open`, `other-recipient`, `too-many-envelopes`: nothing is written
 */
export async function recordEnvelope(tx: Database, transfer: NewTransfer, envelope: NewEnvelope): Promise<Recording> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const begun = await beginTransfer(tx, transfer, envelope)
    if (begun === 'known') return await joinKnown(tx, envelope)
    if (begun !== 'taken') return { kind: 'begun', extra: envelope.bid, ...begun }
    const open = await lockOpenTransfer(tx, transfer.account)
    if (open) return await join(tx, open, transfer, envelope)
  }
  throw new Error('the open transfers of an account change faster than they can be locked')
}

async function join(
  tx: Database,
  open: Transfer,
  { kind, owner = null, sequenceNumber, recipient, sponsor = null, lineJob = null, linePosition = null }: NewTransfer,
  envelope: NewEnvelope,
): Promise<Recording> {
  // The envelope may be recorded already, for this transfer or for an earlier one: a second request can be verified
  // before the first is answered.
  const existing = await findTransferOfHash(tx, envelope.innerHash)
  if (existing) return { kind: 'known', ...existing }
  const rivals = await findEnvelopes(tx, [open.id])
  // The amounts of a transfer belong to one sponsor: after a change of the key, the next transfer has the new one. Two hosts with
  // the same seed may have signed the payments of two lines with the same number.
  const isSame = open.sequenceNumber === sequenceNumber && open.sponsor === sponsor
  if (!isSame || open.lineJob !== lineJob || open.linePosition !== linePosition) {
    throw sponsorRefused('another-open', { detail: new Date(maxTimeOf(rivals) * 1000).toISOString() })
  }
  if (!isSameCall(open, { kind, owner, recipient })) throw sponsorRefused('other-recipient')
  if (rivals.length >= MAX_ENVELOPES) throw sponsorRefused('too-many-envelopes')
  const added = await addEnvelope(tx, open, envelope)
  if (!added) return await joinKnown(tx, envelope)
  const extra = envelope.bid > open.bid ? envelope.bid - open.bid : 0n
  const raised = { bid: open.bid + extra, lookedUpLedger: null }
  await tx.update(transfers).set(raised).where(eq(transfers.id, open.id))
  return { kind: 'joined', extra, transfer: { ...open, ...raised }, envelopes: [...rivals, added] }
}

async function joinKnown(tx: Database, { innerHash }: NewEnvelope): Promise<Recording> {
  const existing = await findTransferOfHash(tx, innerHash)
  if (!existing) throw new Error('a recorded envelope cannot be found')
  return { kind: 'known', ...existing }
}

/**
 * Records a call whose fee its own account pays, as the faucet's deposits and a channel's registration and merges, before it is
 * submitted. Undefined, and nothing is written, if the account has an open transfer, if the same call was recorded before and has
 * been settled, or if `mayBegin` resolves to false.
 */
export async function recordUnsponsored(
  db: Database,
  transfer: Pick<NewTransfer, 'kind' | 'account' | 'sequenceNumber' | 'recipient' | 'recordedLedger'>,
  { hash: innerHash, signedXdr: signed, maxTime }: SignedCall,
  mayBegin: (tx: Database) => Promise<boolean>,
): Promise<RecordedTransfer | undefined> {
  const now = new Date(await readClock(db))
  return await transact(db, async (tx) => {
    await refuseForeignNetwork(tx)
    if (!(await mayBegin(tx))) return undefined
    const row = { ...transfer, quotaDay: quotaDay(now), createdAt: now }
    const begun = await beginTransfer(tx, row, { innerHash, outerHash: null, signed, bid: 0n, maxTime })
    return typeof begun === 'string' ? undefined : begun
  })
}
