import { SponsorRefusal } from '#lib/refusal/sponsor-refusal.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import { askUntilRecent, isFarBelow, LAG } from '#lib/stellar/view.ts'
import type { Line } from '#lib/transfers/line.ts'
import { linkRepeat } from '#lib/transfers/payout-link.ts'
import { findTransferOfHash } from '#lib/transfers/rows.ts'
import { readPaymentsSince, type TokenEvent } from './channel-events.ts'
import { LineError } from './line-error.ts'
import { recordPayment } from './lost-payment.ts'
import { readMarkKeys } from './mark-keys.ts'
import { findMarked, purposeOf } from './payment-mark.ts'
import type { Relay } from './relay.ts'

/** How far back a process reads the ledger at first: as far as an RPC looks in one request, about 14 hours. */
const LOOK_BACK = 10_000

/** How many payments are remembered at most, the newest. */
const MAX_PAYMENTS = 100_000

/** For how many jobs the time of their reading is remembered. */
const MAX_JOBS = 1_000

/**
 * Requires that no channel of the relays' key has paid the line in the last 10,000 ledgers, as the ledger shows, even if the database has no record of it. A payment found there is recorded, and settles the line or its payout. Each
 * process reads once per ledger what is new.
 * @throws LineError `line-gone`, `payout-gone` or `payout-busy` if it was paid; LedgerError
 */
export async function requireUnpaidOnLedger(relay: Relay, line: Line): Promise<void> {
  await readUpToNow(relay, line)
  const markKeys = await readMarkKeys(relay)
  const purpose = purposeOf(line)
  const candidates = [...relay.memory.pastPayments.payments.values()].filter(({ from, to, channel }) =>
    // The mark names the payout: an earlier run may have paid it from the escrow of another wallet.
    line.payout === null ? from === channel : from !== channel && to === line.recipient,
  )
  const paid = await findMarked(candidates, (payment) => ({ markKey: markKeys.get(payment.channel), payment, purpose }))
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
  if (past.readAt.size >= MAX_JOBS) past.readAt.clear()
  past.readAt.set(job, performance.now())
}

async function readPayments(relay: Relay): Promise<void> {
  const { pastPayments: past } = relay.memory
  const { view } = relay.network
  const channels = [...(await readMarkKeys(relay)).keys()]
  const { response } = await askUntilRecent(
    async () => {
      const latest = view.isCurrent() ? view.latestLedger() : await view.readLatest()
      // If the latest ledger is far below an earlier one, the network was reset.
      const known = isFarBelow(latest, past.through) ? 0 : Math.min(past.through, latest - LAG)
      const sinceLedger = Math.max(latest - LOOK_BACK, known)
      return await readPaymentsSince(relay, channels, { sinceLedger, latestLedger: latest })
    },
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
