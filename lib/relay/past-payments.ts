import { and, eq, sql } from 'drizzle-orm'
import { payouts } from '#drizzle/schema/directory.ts'
import { relayLines } from '#drizzle/schema/relay.ts'
import { hasPaidDirectly } from '#lib/archive/direct-payments.ts'
import { SponsorRefusal } from '#lib/refusal/sponsor-refusal.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import { askUntilRecent, isFarBelow, LAG } from '#lib/stellar/view.ts'
import type { Line } from '#lib/transfers/line.ts'
import { linkRepeat } from '#lib/transfers/payout-link.ts'
import { findTransferOfHash } from '#lib/transfers/rows.ts'
import { readPaymentsSince, type TokenEvent } from './channel-events.ts'
import { LineError } from './line-error.ts'
import { recordPayment } from './lost-payment.ts'
import { findMarked, purposeOf, readMarkKeys } from './payment-mark.ts'
import type { Relay } from './relay.ts'

/** How far back a process reads the ledger at first: as far as an RPC looks in one request, about 14 hours. */
const LOOK_BACK = 10_000

/** How many payments are remembered at most, the newest. */
const MAX_PAYMENTS = 100_000

/**
 * Requires that no channel of the relays' key has paid the line in the last 10,000 ledgers, as the ledger shows, even if the database
 * has no record of it. A payment found there is recorded, and settles the line or its payout. Each process reads once per ledger what
 * is new.
 * @throws LineError `line-gone`, `payout-gone` or `payout-busy` if it was paid; LedgerError
 */
export async function requireUnpaidOnLedger(relay: Relay, line: Line): Promise<void> {
  await readUpToNow(relay)
  const purpose = purposeOf(line)
  const candidates = [...relay.memory.pastPayments.payments.values()].filter(({ from, to, channel }) =>
    // The mark names the payout: an earlier run may have paid it from the escrow of another wallet.
    line.payout === null ? from === channel : from !== channel && to === line.recipient,
  )
  const paid = await findMarked(await readMarkKeys(relay), candidates, (payment) => ({ payment, purpose }))
  if (paid) await settle(relay, paid, line)
}

/** Reads the payments that are not known yet. Lines that begin in the same ledger share the reading. */
async function readUpToNow(relay: Relay): Promise<void> {
  const { pastPayments: past } = relay.memory
  const { view } = relay.network
  const latest = view.latestLedger()
  if (view.isCurrent() && past.through >= latest && !isFarBelow(latest, past.through)) return
  past.reading ??= readPayments(relay).finally(() => {
    past.reading = undefined
  })
  await past.reading
}

async function readPayments(relay: Relay): Promise<void> {
  const { pastPayments: past } = relay.memory
  const { view } = relay.sponsor.tracker
  const channels = [...(await readMarkKeys(relay)).keys()]
  // Some nodes lag a few ledgers behind others. If the latest ledger is far below an earlier one, the network was reset.
  const isReset = (latest: number) => isFarBelow(latest, past.through)
  const since = (latest: number) =>
    Math.max(latest - LOOK_BACK, isReset(latest) ? 0 : Math.min(past.through, latest - LAG))
  const { response } = await askUntilRecent(
    () => readPaymentsSince(relay, channels, since),
    ({ latestLedger }) => latestLedger >= view.latestLedger(),
  )
  const { payments, latestLedger } = response
  if (isFarBelow(latestLedger, view.latestLedger())) {
    throw new LedgerError('unavailable', 'the RPC’s events are behind its ledger')
  }
  if (isReset(latestLedger)) past.payments.clear()
  for (const payment of payments) past.payments.set(payment.hash, payment)
  for (const hash of [...past.payments.keys()].slice(0, -MAX_PAYMENTS)) past.payments.delete(hash)
  past.through = latestLedger
}

/** Settles the line or payout that a payment on the ledger was made for. @throws LineError */
async function settle(relay: Relay, payment: TokenEvent, line: Line): Promise<never> {
  const db = await relay.database()
  const transfer = (await findTransferOfHash(db, payment.hash))?.transfer
  if (!transfer) {
    const recorded = await recordPayment(relay, payment)
    if (recorded !== 'recorded') throw new LineError('payout-busy', 'its payment cannot be recorded yet')
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
