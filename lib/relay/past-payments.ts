import { SponsorRefusal } from '#lib/refusal/sponsor-refusal.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import type { Line } from '#lib/transfers/line.ts'
import { linkRepeat } from '#lib/transfers/payout-link.ts'
import { isFarBelow, LAG } from '#lib/transfers/recency.ts'
import { findTransferOfHash } from '#lib/transfers/rows.ts'
import { readPaymentsSince, type TokenEvent } from './channel-events.ts'
import { LineError } from './line-error.ts'
import { recordPayment } from './lost-payment.ts'
import { readMarkKeys } from './mark-keys.ts'
import { isMarked, purposeOf } from './payment-mark.ts'
import type { Relay } from './relay.ts'

/** How far back the ledger is read: as far as an RPC looks in one request, about 14 hours. */
const LOOK_BACK = 10_000

/** How many jobs are remembered at most. */
const MAX_JOBS = 1_000

/**
 * Requires that no channel of the relays' key has paid the line in the last 10,000 ledgers, as the ledger shows, even if the database
 * has no record of it. A payment found there is recorded, and settles the line or its payout. Each process reads the ledger
 * once per job, before its first payment for it: later payments are in the database.
 * @throws LineError `line-gone`, `payout-gone` or `payout-busy` if it was paid; LedgerError
 */
export async function requireUnpaidOnLedger(relay: Relay, line: Line): Promise<void> {
  const { pastPayments } = relay.memory
  if (pastPayments.paid.has(purposeOf(line))) throw new LineError('payout-gone', 'this host has paid it')
  await readOnceFor(relay, line.job)
  const purpose = purposeOf(line)
  const markKeys = await readMarkKeys(relay)
  for (const payment of pastPayments.payments.values()) {
    const markKey = markKeys.get(payment.channel)
    // The mark names the payout: an earlier run may have paid it from the escrow of another wallet.
    const isOfKind = (line.payout === null) === (payment.from === payment.channel)
    const isForPayee = line.payout === null || payment.to === line.recipient
    if (markKey && isOfKind && isForPayee && isMarked(markKey, payment, purpose)) await settle(relay, payment, line)
  }
}

/** Remembers what this process has paid: rows that were inserted again must not make it pay twice. */
export function rememberPaid({ memory }: Relay, line: Line): void {
  const { paid } = memory.pastPayments
  paid.add(purposeOf(line))
  const [oldest] = paid
  if (paid.size > MAX_PAID && oldest !== undefined) paid.delete(oldest)
}

/** How many payments are remembered at most. */
const MAX_PAID = 100_000

async function readOnceFor(relay: Relay, job: string): Promise<void> {
  const { jobs } = relay.memory.pastPayments
  if (jobs.size > MAX_JOBS) jobs.clear()
  const reading = jobs.get(job) ?? readPayments(relay)
  jobs.set(job, reading)
  await reading.catch((error: unknown) => {
    jobs.delete(job)
    throw error
  })
}

async function readPayments(relay: Relay): Promise<void> {
  const { pastPayments: past } = relay.memory
  const channels = [...(await readMarkKeys(relay)).keys()]
  // Some nodes lag a few ledgers behind others. If the latest ledger is far below an earlier one, the network was reset.
  const isReset = (latest: number) => isFarBelow(latest, past.through)
  const since = (latest: number) =>
    Math.max(latest - LOOK_BACK, isReset(latest) ? 0 : Math.min(past.through, latest - LAG))
  const { payments, latestLedger } = await readPaymentsSince(relay, channels, since)
  if (isFarBelow(latestLedger, relay.sponsor.tracker.recency.latestLedger())) {
    throw new LedgerError('unavailable', 'the RPC’s events are behind its ledger')
  }
  if (isReset(latestLedger)) past.payments.clear()
  for (const payment of payments) past.payments.set(payment.hash, payment)
  for (const { hash, ledger } of past.payments.values()) {
    if (ledger < latestLedger - LOOK_BACK) past.payments.delete(hash)
  }
  past.through = latestLedger
}

/** Settles the line or payout that a payment on the ledger was made for. @throws LineError */
async function settle(relay: Relay, payment: TokenEvent, line: Line): Promise<never> {
  const db = await relay.database()
  const transfer = (await findTransferOfHash(db, payment.hash))?.transfer
  if (!transfer) {
    const recorded = await recordPayment(relay, payment)
    if (typeof recorded === 'string') throw new LineError('payout-busy', 'its payment cannot be recorded yet')
    throw new LineError('line-gone', 'the ledger shows its payment')
  }
  if (line.payout !== null && transfer.payout === null) {
    // A release recorded it without a payout, because none could be claimed then.
    const claim = { payoutId: line.payout, hash: payment.hash, now: relay.now() }
    await linkRepeat(db, transfer.id, claim).catch((error: unknown) => {
      if (!(error instanceof SponsorRefusal)) throw error
    })
  }
  throw new LineError('payout-gone', 'the ledger shows its payment')
}
