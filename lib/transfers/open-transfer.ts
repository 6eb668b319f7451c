import { eq } from 'drizzle-orm'
import { type Transfer, transfers } from '#drizzle/schema/transfers.ts'
import { readClock } from '#lib/db/clock.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import type { SignedCall } from '#lib/wallet/transaction.ts'
import { quotaDay } from './quota.ts'
import {
  addEnvelope,
  addTransfer,
  findEnvelopes,
  findTransferOfHash,
  isSameCall,
  lockOpenTransfer,
  type NewEnvelope,
  type RecordedTransfer,
} from './rows.ts'
import { refuseForeignNetwork } from './stop.ts'

/** The maximum number of envelopes that compete for one transfer: each is one more to look up. */
const MAX_ENVELOPES = 3

/** The first to commit creates the account's one open transfer; the others join it, unless it has been settled. */
const ATTEMPTS = 5

/** The columns that a transfer begins with. */
type NewTransfer = Pick<
  Transfer,
  'kind' | 'account' | 'sequenceNumber' | 'recipient' | 'quotaDay' | 'recordedLedger' | 'createdAt'
> &
  Partial<
    Pick<Transfer, 'owner' | 'sponsor' | 'quotaAccount' | 'organisation' | 'requestId' | 'lineJob' | 'linePosition'>
  >

/** The optional columns of NewTransfer. */
const UNSET = {
  owner: null,
  sponsor: null,
  quotaAccount: null,
  organisation: null,
  requestId: null,
  lineJob: null,
  linePosition: null,
}

/**
 * The result of recording an envelope. `begun`: it started a new transfer. `joined`: it competes for the open transfer of
 * its number, which now reserves `extra` stroops more. `known`: it was recorded before. `refused`: nothing was written.
 */
export type Recording =
  | ({ kind: 'begun' | 'joined'; extra: bigint } & RecordedTransfer)
  | ({ kind: 'known' } & RecordedTransfer)
  | { kind: 'refused'; reason: 'another-open' | 'other-recipient' | 'too-many-envelopes'; until: number }

/**
 * Records an envelope before it is submitted, inside the caller's SQL transaction. An account has at most one open
 * transfer. An envelope with the same number, call and recipient joins it under its row lock, which settlement also takes.
 */
export async function recordEnvelope(tx: Database, transfer: NewTransfer, envelope: NewEnvelope): Promise<Recording> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    // No ledger up to the recorded one can include it.
    const row = { ...transfer, bid: envelope.bid, lookedUpLedger: transfer.recordedLedger }
    const [begun] = await addTransfer(tx, { ...UNSET, ...row })
    if (begun) return await begin(tx, begun, envelope)
    const open = await lockOpenTransfer(tx, transfer.account)
    if (open) return await join(tx, open, transfer, envelope)
  }
  throw new Error('the open transfers of an account change faster than they can be locked')
}

async function begin(tx: Database, transfer: Transfer, envelope: NewEnvelope): Promise<Recording> {
  const added = await addEnvelope(tx, transfer, envelope)
  if (added) return { kind: 'begun', extra: envelope.bid, transfer, envelopes: [added] }
  // The same envelope was recorded before, and its transfer has been settled.
  await tx.delete(transfers).where(eq(transfers.id, transfer.id))
  return await joinKnown(tx, envelope)
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
  const refused = (reason: (Recording & { kind: 'refused' })['reason']): Recording => ({
    kind: 'refused',
    reason,
    until: Math.max(...rivals.map(({ maxTime }) => maxTime)),
  })
  // The amounts of a transfer belong to one sponsor: after a change of the key, the next transfer has the new one.
  if (open.sequenceNumber !== sequenceNumber || open.sponsor !== sponsor) return refused('another-open')
  // Two hosts with the same seed may have signed the payments of two lines with the same number.
  if (open.lineJob !== lineJob || open.linePosition !== linePosition) return refused('another-open')
  if (!isSameCall(open, { kind, owner, recipient })) return refused('other-recipient')
  if (rivals.length >= MAX_ENVELOPES) return refused('too-many-envelopes')
  if (!(await addEnvelope(tx, open, envelope))) return await joinKnown(tx, envelope)
  const extra = envelope.bid > open.bid ? envelope.bid - open.bid : 0n
  const raised = { bid: open.bid + extra, lookedUpLedger: null }
  await tx.update(transfers).set(raised).where(eq(transfers.id, open.id))
  return { kind: 'joined', extra, transfer: { ...open, ...raised }, envelopes: await findEnvelopes(tx, [open.id]) }
}

async function joinKnown(tx: Database, { innerHash }: NewEnvelope): Promise<Recording> {
  const existing = await findTransferOfHash(tx, innerHash)
  if (!existing) throw new Error('a recorded envelope cannot be found')
  return { kind: 'known', ...existing }
}

/**
 * Records a call whose fee its own account pays, as the faucet's deposits and a channel's registration and merges, before it is
 * submitted. Undefined, and nothing is written, if the account has an open transfer, or if `mayBegin` resolves to false.
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
    const row = {
      ...UNSET,
      ...transfer,
      quotaDay: quotaDay(now),
      createdAt: now,
      lookedUpLedger: transfer.recordedLedger,
    }
    const [begun] = await addTransfer(tx, { ...row, bid: 0n })
    if (!begun) return undefined
    const envelope = await addEnvelope(tx, begun, { innerHash, outerHash: null, signed, bid: 0n, maxTime })
    if (envelope) return { transfer: begun, envelopes: [envelope] }
    // The same call was recorded before, and has been settled.
    await tx.delete(transfers).where(eq(transfers.id, begun.id))
    return undefined
  })
}
