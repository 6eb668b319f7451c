import { and, eq, isNotNull, isNull, sql } from 'drizzle-orm'
import { payouts } from '#drizzle/schema/directory.ts'
import { type ReconcileProblem, relayChannels, relayLines } from '#drizzle/schema/relay.ts'
import { hasPaidDirectly } from '#lib/archive/direct-payments.ts'
import type { Database } from '#lib/db/connection.ts'
import { SponsorRefusal } from '#lib/refusal/sponsor-refusal.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import { decodeEnvelope, encodeSigned } from '#lib/stellar/node/envelope.ts'
import { lookUp } from '#lib/stellar/transaction.ts'
import { askUntilRecent, isFarBelow, LAG } from '#lib/stellar/view.ts'
import { HAS_LIVE_TRANSFER, IS_OPEN_LINE, type Line, lockLine } from '#lib/transfers/line.ts'
import { linkRepeat } from '#lib/transfers/payout-link.ts'
import { findTransferOfHash } from '#lib/transfers/rows.ts'
import { countFound, readStop, stopPayments } from '#lib/transfers/stop.ts'
import { sponsorChannel } from '#lib/transfers/submit.ts'
import { readPaymentsSince, type TokenEvent } from './channel-events.ts'
import { isChannel, setChannel } from './channel-state.ts'
import { isLineError, LineError } from './line-error.ts'
import { findMarked, type MarkKeys, purposeOf, readMarkKeys, sealMarkKeyOf } from './payment-mark.ts'
import type { Relay, RelayStore } from './relay.ts'
import { sequenceNumberOf } from './sequence.ts'

/** How far back a process reads the ledger at first: as far as an RPC looks in one request, about 14 hours. */
const LOOK_BACK = 10_000

/** How many payments are remembered at most, the newest. */
const MAX_PAYMENTS = 100_000

/** For how many jobs the time of their reading is remembered. */
const MAX_JOBS = 1_000

/**
 * Requires that no channel of the relays' key has paid the line in the last 10,000 ledgers, whether or not the database knows it. A
 * payment that is found is recorded, and settles the line or its payout. Each process reads once what is new.
 * @throws LineError `line-gone`, `payout-gone` or `payout-busy` if it was paid; LedgerError
 */
export async function requireUnpaidOnLedger(relay: Relay, line: Line): Promise<void> {
  await readUpToNow(relay, line)
  const purpose = purposeOf(line)
  const candidates = [...relay.memory.pastPayments.payments.values()].filter(({ from, to, channel }) =>
    // The mark names the payout: an earlier run may have paid it from the escrow of another wallet.
    line.payout === null ? from === channel : from !== channel && to === line.recipient,
  )
  const paid = await findMarked(await readMarkKeys(relay), candidates, (payment) => ({ payment, purpose }))
  if (paid) await settle(relay, paid, line)
}

/**
 * Reads the payments that are not known yet. Lines that begin in the same ledger share the reading. A line of a run can be paid by
 * one channel only, whose sequence number is compared as well: for such lines a reading is good until the next round of chores.
 */
async function readUpToNow(relay: Relay, { job, payout }: Line): Promise<void> {
  const { pastPayments: past } = relay.memory
  const { view } = relay.network
  const latest = view.latestLedger()
  const readAt = past.readAt.get(job) ?? Number.NEGATIVE_INFINITY
  const isRecent =
    payout === null
      ? view.isCurrent() && past.through >= latest
      : performance.now() < readAt + relay.times.chores * 1000
  if (isRecent && !isFarBelow(latest, past.through)) return
  past.reading ??= readPayments(relay).finally(() => {
    past.reading = undefined
  })
  await past.reading
  // A reading that was shared may have begun before, and one from a node that lags is not good for long.
  if (past.through < latest) return
  if (past.readAt.size >= MAX_JOBS) past.readAt.clear()
  past.readAt.set(job, performance.now())
}

async function readPayments(relay: Relay): Promise<void> {
  const { pastPayments: past } = relay.memory
  const { view } = relay.network
  const channels = [...(await readMarkKeys(relay)).keys()]
  const since = (latest: number) => {
    // If the latest ledger is far below an earlier one, the network was reset.
    const known = isFarBelow(latest, past.through) ? 0 : Math.min(past.through, latest - LAG)
    return Math.max(latest - LOOK_BACK, known)
  }
  const { response } = await askUntilRecent(
    () => readPaymentsSince(relay, channels, since),
    ({ latestLedger }) => latestLedger >= view.latestLedger(),
  )
  const { payments, latestLedger } = response
  if (isFarBelow(latestLedger, view.latestLedger())) {
    throw new LedgerError('unavailable', 'the RPC’s events are behind its ledger')
  }
  if (isFarBelow(latestLedger, past.through)) past.payments.clear()
  for (const payment of payments) past.payments.set(payment.hash, payment)
  for (const hash of [...past.payments.keys()].slice(0, -MAX_PAYMENTS)) past.payments.delete(hash)
  past.through = latestLedger
}

/** Settles the line or payout that a payment on the ledger was made for. @throws LineError */
async function settle(relay: Relay, payment: TokenEvent, line: Line): Promise<never> {
  const db = await relay.database()
  const transfer = (await findTransferOfHash(db, payment.hash))?.transfer
  if (!transfer) {
    const recorded = await recordPayment(relay, payment).catch((error: unknown) => {
      // The ledger has applied it: the sponsor refuses it only by the word of a node that lags.
      if (error instanceof SponsorRefusal) return 'rpc-behind' as const
      throw error
    })
    if (recorded === 'history-gap')
      throw new LineError('payout-gone', 'the ledger shows its payment, and no longer how')
    if (typeof recorded === 'string') throw new LineError('payout-busy', 'its payment cannot be recorded yet')
    throw new LineError('line-gone', 'the ledger shows its payment')
  }
  if (line.payout !== null && transfer.payout === null) {
    // It was recorded without a payout, because none could be claimed then.
    const claim = { payoutId: line.payout, hash: payment.hash, now: relay.now() }
    await linkRepeat(db, transfer.id, claim).catch((error: unknown) => {
      if (!(error instanceof SponsorRefusal)) throw error
    })
  }
  throw new LineError('payout-gone', 'the ledger shows its payment')
}

/**
 * Requires that the employer has not paid the payee itself since the payout was created, in a transfer that this database does not
 * have: it may have been this payout, before a restore. The employer decides: what it paid before such a line failed counts as
 * known when it starts the run again. The archive shows it as far as it goes back without a gap.
 * @throws LineError `employer-paid`; LedgerError `unavailable` while the archive is catching up
 */
export async function requireUnpaidByEmployer(relay: Relay, line: Line, owner: string): Promise<void> {
  const { payout: id, recipient } = line
  if (id === null || recipient === null) return
  // A restored archive lacks what was paid since the backup.
  await relay.archived()
  const db = await relay.database()
  const failed = db
    .select({ at: sql`max(${relayLines.settledAt})` })
    .from(relayLines)
    .where(and(eq(relayLines.payout, id), eq(relayLines.error, 'employer-paid')))
  const since = sql`greatest(${payouts.createdAt}, (${failed}))`.mapWith(payouts.createdAt)
  const [payout] = await db.select({ since }).from(payouts).where(eq(payouts.id, id))
  if (!payout || !(await hasPaidDirectly(db, relay.token, { from: owner, to: recipient, since: payout.since }))) return
  throw new LineError('employer-paid', 'the account has paid the payee itself since the payout was created')
}

/**
 * Records a payment that the ledger applied and that has no row, ends the line or settles the payout that it was made for, and stops
 * payments where `noteFound` has to, in one SQL transaction. A payment from an escrow needs an operator's word if its mark names no
 * payout of this database; the wallet may have moved to another organisation since. Resolves to the transfer, or to a problem with
 * which nothing is recorded: `transfer-open` while another transfer that may pay the same is undecided, `rpc-behind` while the RPC
 * does not have the transaction, `history-gap` if it no longer has it.
 */
export async function recordPayment(relay: Relay, event: TokenEvent): Promise<{ id: string } | ReconcileProblem> {
  const { sponsor, network } = relay
  const { channel, from, hash } = event
  const isDelegated = from !== channel
  const markKeys = await readMarkKeys(relay)
  const sealedMarkKey = await sealMarkKeyOf(relay, channel)
  const found = await lookUp(network, hash)
  if (found.status === 'NOT_FOUND') return found.oldestLedger > event.ledger ? 'history-gap' : 'rpc-behind'
  const signedXDR = encodeSigned(decodeEnvelope(found.envelopeXdr, network.passphrase))
  const number = sequenceNumberOf(signedXDR, network.passphrase)
  for (;;) {
    const line = await findPaidLine(relay, markKeys, event)
    if (line?.isLive) return 'transfer-open'
    const payout = await findPaidPayout(relay, markKeys, event)
    // A transfer that pays no line may hold it: that of a client.
    if (payout?.status === 'pending' && payout.error === null) return 'transfer-open'
    const claim = async (tx: Database) => {
      if (line && !(await lockLine(tx, line))) throw new LineError('line-gone', 'the line has ended in the meantime')
    }
    const onFound = (tx: Database, isShown: boolean) => {
      // It may have been for a payout that was instructed again after the backup.
      const found = { channel, number, isUnknown: isDelegated && !isShown, sealedMarkKey }
      return noteFound({ ...relay, database: async () => tx }, found)
    }
    try {
      const id = await sponsorChannel(
        { sponsor, tracker: sponsor.tracker },
        {
          channel,
          quotaAccount: line?.quotaAccount ?? from,
          signedXDR,
          line: line && { ...line, sealedOpening: null, claim },
          onFound,
          ...(isDelegated && { delegated: payout ? { payoutId: payout.id, organisation: payout.organisation } : {} }),
        },
      )
      return { id }
    } catch (error) {
      if (!isLineError(error, 'line-gone')) throw error
    }
  }
}

/**
 * Counts a payment that was found on the ledger, in the SQL transaction that records it. Payments stop if its row explains a number
 * that none did: an earlier payment of the channel may have no row either, and no comparison shows that any more.
 */
async function noteFound(
  store: RelayStore,
  {
    channel,
    number,
    isUnknown,
    sealedMarkKey,
  }: { channel: string; number: bigint; isUnknown: boolean; sealedMarkKey: string | null },
): Promise<void> {
  const { token } = store
  const tx = await store.database()
  const { reconciledStop, adoptedSequence, retired } = relayChannels
  // A database that was replaced under its host may not have its row yet: until it is reconciled, it keeps payments stopped.
  const unknown = { token, address: channel, seenAt: new Date(0), problem: 'account' as const, sealedMarkKey }
  await tx.insert(relayChannels).values(unknown).onConflictDoNothing()
  const columns = { again: reconciledStop, adopted: adoptedSequence, retired }
  const [channelRow] = await tx.select(columns).from(relayChannels).where(isChannel(token, channel))
  const { again, adopted, retired: isRetired } = channelRow ?? { again: null, adopted: null, retired: false }
  const explains = (adopted ?? -1n) < number
  if (!isRetired && (isUnknown || explains)) {
    await stopPayments(tx, { token, channel, now: store.now(), again: (explains && again) || undefined })
  }
  await countFound(tx, token)
  if (isUnknown && (await readStop(tx, token)))
    await setChannel(store, channel, { hasUnknownPurpose: true }, eq(retired, false))
}

/** The open line that a payment was made for; for one from an escrow a line of the same payout, in any run of any wallet. */
async function findPaidLine(relay: Relay, markKeys: MarkKeys, payment: TokenEvent) {
  const { channel, from, to } = payment
  const db = await relay.database()
  const { job, position, payout, recipient, quotaAccount } = relayLines
  const isOfKind = from === channel ? isNull(payout) : and(isNotNull(payout), eq(recipient, to))
  const columns = { job, position, payout, quotaAccount, isLive: HAS_LIVE_TRANSFER }
  const candidates = await db.select(columns).from(relayLines).where(and(isOfKind, IS_OPEN_LINE))
  return await findMarked(markKeys, candidates, (line) => ({ payment, purpose: purposeOf(line) }))
}

/** The payout that a payment from an escrow was made for. If it is `pending` with an error, no open transfer pays it. */
async function findPaidPayout(relay: Relay, markKeys: MarkKeys, payment: TokenEvent) {
  const { channel, from, to } = payment
  if (from === channel) return undefined
  const { id, organisation, status, error, address } = payouts
  const db = await relay.database()
  const candidates = await db.select({ id, organisation, status, error }).from(payouts).where(eq(address, to))
  return await findMarked(markKeys, candidates, ({ id }) => ({ payment, purpose: id }))
}
