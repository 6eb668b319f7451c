import { eq } from 'drizzle-orm'
import { type Transfer, transfers } from '#drizzle/schema/transfers.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { noteFoundPayment } from '#lib/directory/payouts/cancellation.ts'
import { countSettled } from './counts.ts'
import type { LedgerRecord } from './decide.ts'
import { releaseUnsent } from './line.ts'
import { endOfSecond, linkEarlierPayout, linkPayout, payoutUnfit } from './payout-link.ts'
import { charge, claimOf, quotaDay } from './quota.ts'
import { auditRecorded, type Proposal, rowOf } from './record.ts'
import {
  addEnvelope,
  addFirstEnvelope,
  findTransferOfHash,
  isRival,
  lockOpenTransfer,
  type RecordedTransfer,
} from './rows.ts'
import { columnsOf, settleOwners } from './settle.ts'
import { lockForStop } from './stop.ts'

/** `sponsor`: the account that pays the fee bumps of the service. */
type Found = Proposal & { sponsor: string }

/**
 * Records a successful transaction that was found on the ledger: one that the client submitted directly, or one whose row a
 * restored database lacks. What the service has paid for it counts against the quotas of the day on which it was applied.
 * If a transfer of this sequence number to the same recipient is open, the transaction joins it as an envelope, and the next poll
 * settles the transfer. Otherwise it becomes a separate settled transfer and pays a payout that was created before the ledger
 * closed, preferring the payout of an earlier transfer with this number. A payment from an escrow is recorded even if its payout was
 * canceled or paid otherwise since the database was restored from a backup; a canceled payout then shows the hash.
 * @throws SponsorRefusal if the payout that the client names doesn't fit
 */
export async function recordApplied(db: Database, proposal: Found, record: LedgerRecord): Promise<RecordedTransfer> {
  const { inner, intent, terms } = proposal
  const fits = await transact(db, async (tx) => {
    // Found payments are counted there: the row is locked first, as by a stop.
    if (terms.onFound) await lockForStop(tx)
    const open = await lockOpenTransfer(tx, intent.account)
    if (await findTransferOfHash(tx, inner.hashHex)) return true
    await terms.line?.claim(tx)
    const { job = null, position = null } = terms.line ?? {}
    // The open transfer of another line is not what this transaction has paid.
    const isPaid = open?.lineJob === job && open.linePosition === position && isRival(open, intent)
    return await (isPaid ? joinApplied(tx, open, proposal, record) : settleApplied(tx, proposal, record))
  })
  // Thrown after the commit: without its envelope the open transfer would expire, and its payout would be sent again.
  const recorded = await findTransferOfHash(db, inner.hashHex)
  if (!recorded) throw new Error('the transfer that was just recorded cannot be found')
  if (!fits) throw await payoutUnfit(db, recorded.transfer, limitsOf(terms, record))
  return recorded
}

/** False if the payout that the client names does not belong to the open transfer. */
async function joinApplied(tx: Database, open: Transfer, proposal: Proposal, record: LedgerRecord): Promise<boolean> {
  const { now, terms } = proposal
  await addEnvelope(tx, open, envelopeOf(proposal, record))
  await tx.update(transfers).set({ lookedUpLedger: null }).where(eq(transfers.id, open.id))
  const linked = terms.payoutId === undefined ? open : await linkPayout(tx, open, limitsOf(terms, record), now)
  await auditRecorded(tx, linked ?? open, proposal)
  return linked !== undefined || open.kind === 'delegated'
}

/** @throws SponsorRefusal, which rolls everything back, if the payout that the client names does not fit */
async function settleApplied(tx: Database, proposal: Found, record: LedgerRecord): Promise<true> {
  const { now, terms } = proposal
  const { payoutId } = terms
  const { feeCharged } = record
  const sponsor = record.hash === record.applied ? null : proposal.sponsor
  const columns = {
    ...(await rowOf(tx, proposal)),
    ...columnsOf({ status: 'succeeded', record, feeCharged }),
    sponsor,
    quotaDay: quotaDay(new Date(record.closedAt * 1000)),
    recordedLedger: record.ledger,
    // Nothing is left to be charged.
    bid: 0n,
    settledAt: now,
  }
  const [written] = await tx.insert(transfers).values(columns).returning()
  if (!written) throw new Error('the insert of a transfer returned no row')
  // The same request, sent twice at once: the other one has recorded it.
  if ((await addFirstEnvelope(tx, written, envelopeOf(proposal, record))) === 'known') return true
  const linked =
    written.kind === 'delegated'
      ? await linkDelegated(tx, written, payoutId, now)
      : await linkEarlierPayout(tx, written, limitsOf(terms, record), now)
  if (!linked) throw await payoutUnfit(tx, written, limitsOf(terms, record))
  await auditRecorded(tx, linked, proposal)
  const closed = await settleOwners(tx, linked, now)
  // It may update a channel, which is locked before the quotas.
  await terms.onFound?.(tx, linked.payout !== null || linked.foundFor !== null)
  await releaseUnsent(tx, closed)
  if (sponsor !== null) await charge(tx, claimOf(linked, linked.kind === 'delegated' ? 0 : 1), feeCharged)
  await countSettled(tx, linked)
  return true
}

/**
 * Links the payment from an escrow to the payout that it is marked with. If that is canceled, or paid by another transfer, it
 * keeps its status, and the payment only names it.
 */
async function linkDelegated(tx: Database, written: Transfer, payout: string | undefined, now: Date) {
  const linked = await linkPayout(tx, written, { payoutId: payout, wasLost: true }, now)
  if (linked) return linked
  const { id, hash } = written
  if (payout === undefined || hash === null) return written
  const isNoted = await noteFoundPayment({ db: tx, now }, { id: payout, transfer: id, txHash: hash })
  if (!isNoted) return written
  await tx.update(transfers).set({ foundFor: payout }).where(eq(transfers.id, id))
  return { ...written, foundFor: payout }
}

/** A transaction pays no payout that was created after its ledger closed. */
const limitsOf = ({ payoutId }: Proposal['terms'], { closedAt }: LedgerRecord) => ({
  payoutId,
  createdBefore: endOfSecond(new Date(closedAt * 1000)),
})

/** The envelope costs the sponsor nothing and is never sent. Its maxTime is no later than the ledger that applied it. */
const envelopeOf = ({ inner, intent }: Proposal, { outerHash, closedAt }: LedgerRecord) => ({
  innerHash: inner.hashHex,
  outerHash,
  signed: null,
  bid: 0n,
  maxTime: Math.min(Number(intent.maxTime), closedAt),
})
