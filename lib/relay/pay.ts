import type { ChannelProblem } from '#drizzle/schema/relay.ts'
import { isUnreachable } from '#lib/db/connection.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { type RefusalReason, SponsorRefusal } from '#lib/refusal/sponsor-refusal.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import { sponsorChannel } from '#lib/transfers/channel.ts'
import { isBehindAll, isOfTheMoment } from '#lib/transfers/recency.ts'
import { isAnyAble, recordProblem, storeBalance } from './channel-state.ts'
import { checkChannels } from './check.ts'
import { confirmItem, type Ending, end, type RequeueReason, requeue } from './item.ts'
import { ITEM_FAILURES, ItemError, isItemError } from './item-error.ts'
import { findItem, type HeldItem, type Item } from './item-row.ts'
import type { Channel, Relay } from './relay.ts'
import { requireUnpaid } from './run-item.ts'
import { suspectMove } from './sequence.ts'
import { type AheadProof, type PaymentStart, type Signed, signItem } from './sign.ts'

/**
 * The outcome of a step. `ended`: the item has ended, or another worker has it. `requeued`: the item has no channel any
 * more, and may take another one at once. `wait`: the step is repeated after a pause. `hand-over`: another worker takes
 * over, perhaps on a host that reaches the ledger.
 */
export type Outcome = 'ended' | 'requeued' | 'wait' | 'hand-over'

interface Step {
  item: HeldItem
  /** the item's channel; undefined if this relay lacks its seed: the item is signed then */
  channel: Channel | undefined
  /** a transfer that was proved ahead */
  proof: AheadProof | undefined
  /** receives the start of the channel's next payment, once the item's transfer has applied */
  onSigned(next: PaymentStart): void
}

/** Takes an item one step towards its payment. If it throws, a database or ledger is out of reach: repeat the step. */
export async function advanceItem(relay: Relay, { item: before, channel, proof, onSigned }: Step): Promise<Outcome> {
  let item = before
  try {
    if (item.status !== 'signed' && channel) {
      if (item.doubtedLedger !== null && !isBehindAll(item.doubtedLedger, await relay.ledger.readLatest())) {
        return await postpone(relay, item, item.doubtedLedger)
      }
      const signed = await signItem(relay, channel, item, proof)
      onSigned(signed.next)
      item = signed.item
      return await submit(relay, item, signed.checked)
    }
    return await submit(relay, item)
  } catch (error) {
    if (error instanceof ItemError) return await answerError(relay, item, error)
    if (error instanceof SponsorRefusal) return await answerRefusal(relay, item, error)
    const isLedgers = isUnavailable(error)
    const isExpected = isLedgers || isUnreachable(error)
    log(isExpected ? 'info' : 'error', 'item waits', { ...nameOf(item), failure: describeFailure(error) })
    if (isLedgers && !(await relay.ledger.check())) return 'hand-over'
    // A signed item waits for its transfer. An unsigned one is given to another worker, whose prover may work.
    return isExpected || item.status === 'signed' ? 'wait' : 'hand-over'
  }
}

const isUnavailable = (error: unknown) =>
  (error instanceof LedgerError || error instanceof Refusal) && error.code === 'unavailable'

const nameOf = ({ job, position, channel, innerHash }: Item) => ({
  job,
  item: position,
  channel: channel ?? undefined,
  hash: innerHash ?? undefined,
})

/** How long a step waits for the ledger (ms) before its worker checks whether it still has the item. */
const PATIENCE_MS = 2_000

/** Submits the item's stored transfer through the sponsor. May be repeated: the same transfer is paid for once. */
async function submit(relay: Relay, item: HeldItem, checked?: Signed['checked']): Promise<Outcome> {
  const { channel, signedXdr: signedXDR, quotaAccount } = item
  if (signedXDR === null) throw new Error('a signed item has no transfer')
  const context = { sponsor: relay.sponsor, tracker: relay.sponsor.tracker, waitMs: PATIENCE_MS }
  const submitted = await sponsorChannel(context, {
    channel,
    quotaAccount,
    signedXDR,
    checked,
    confirm: (tx) => confirmItem(tx, item),
    ...(item.payout !== null && { delegated: { payoutId: item.payout } }),
  })
  switch (submitted.status) {
    case 'open':
    case 'refused': // by the network, which decides nothing: the transfer may still apply until it expires
      return 'wait'
    case 'succeeded':
      await end(relay, item, { status: 'paid', hash: submitted.hash })
      log('info', 'item paid', nameOf(item))
      return 'ended'
    case 'unknown':
      await end(relay, item, { status: 'unknown', hash: submitted.hash })
      log('error', 'item unknown', nameOf(item))
      return 'ended'
    case 'failed':
      log('info', 'item to be paid again', { ...nameOf(item), status: 'failed', code: submitted.resultCode })
      if (item.failures + 1 >= MAX_FAILURES) return await fail(relay, item, ITEM_FAILURES.failedTooOften)
      return await giveBack(relay, item, { because: 'transfer-failed', hash: submitted.hash })
    case 'expired':
      log('info', 'item to be paid again', { ...nameOf(item), status: 'expired' })
      return await giveBack(relay, item, { because: 'transfer-expired' })
  }
}

/** The item fails after this many of its transfers have failed on the ledger: each of them has cost a fee. */
const MAX_FAILURES = 3

async function answerError(relay: Relay, item: HeldItem, error: ItemError): Promise<Outcome> {
  switch (error.code) {
    case 'item-gone':
      return 'ended'
    case 'item-suspended':
      return (await requeue(relay, item, { because: 'handed-over' })) ? 'requeued' : 'ended'
    case 'channel-unfit':
      return await leaveChannel(relay, item, error.problem ?? 'account')
    case 'balance-short':
      return await passOn(relay, item)
    case 'unpayable':
      return await doubt(relay, item, error.message)
    case 'balance-stale':
      // The RPC's balance differs from the stored one, and either may be behind: the balance is read again.
      if (item.payout === null) await storeBalance(relay, item.channel, { readAt: null })
      return await giveBack(relay, item, { because: 'balance-stale' })
    case 'amount-sealed':
      log('error', 'amount cannot be opened', nameOf(item))
      return 'hand-over'
    case 'payout-gone':
      return await skip(relay, item)
    case 'payout-busy':
      return await postponePayout(relay, item)
    case 'call-expired':
    case 'call-failed':
    case 'ledger-stalled':
    case 'not-adopted':
    case 'relay-closing':
      log('info', 'item waits', { ...nameOf(item), failure: error.message })
      return 'wait'
    default:
      if (error.isDoubtful && item.doubtedLedger === null) return await doubt(relay, item, error.code)
      // Why a payout of a run fails: the rows may have been tampered with.
      log('error', 'payout of a run', { ...nameOf(item), code: error.code, failure: error.message })
      return await fail(relay, item, error.code)
  }
}

/** Refusals for a used-up quota: every channel would get them. Other refusals that end an item are logged as errors. */
const FINAL: ReadonlySet<RefusalReason> = new Set(['quota-transfers', 'quota-stroops', 'daily-budget'])
/** Refusals of a transfer that has waited too long, or whose channel has signed another: the item gets a new transfer. */
const PASSING: ReadonlySet<RefusalReason> = new Set([
  'would-fail',
  'expires-too-soon',
  'sequence',
  'too-few-resources',
  'low-resource-fee',
  'no-account',
])

async function answerRefusal(relay: Relay, item: Item, { reason, message }: SponsorRefusal): Promise<Outcome> {
  // The sponsor's float is short, or the channel has another open transfer. Both pass, and the item is not at fault.
  if (reason === 'float' || reason === 'another-open') return 'wait'
  if (reason === 'payout') return await answerTakenPayout(relay, item)
  if (PASSING.has(reason)) return await giveBack(relay, item, { because: 'transfer-expired' })
  if (isOfTheMoment(reason)) return await doubt(relay, item, message)
  if (!FINAL.has(reason)) log('error', 'sponsor refuses the relay', { ...nameOf(item), reason })
  return await fail(relay, item, message)
}

/** The item's payout could not be claimed: it was canceled or changed, or another transfer was faster. */
async function answerTakenPayout(relay: Relay, item: Item): Promise<Outcome> {
  try {
    await requireUnpaid(await relay.database(), item)
  } catch (error) {
    if (isItemError(error, 'payout-gone')) return await skip(relay, item)
    if (isItemError(error, 'payout-busy')) return await postponePayout(relay, item)
    throw error
  }
  return await doubt(relay, item, 'manifest-invalid')
}

/** Ends an item whose payout is paid or canceled. */
async function skip(relay: Relay, item: Item): Promise<Outcome> {
  const hasEnded = await end(relay, item, { status: 'skipped' })
  if (hasEnded) log('info', 'item skipped', nameOf(item))
  return hasEnded || !(await isStillOurs(relay, item)) ? 'ended' : 'wait'
}

async function postponePayout(relay: Relay, item: Item): Promise<Outcome> {
  const busy = { because: 'payout-busy', pauseSeconds: relay.times.rest } as const
  return (await requeue(relay, item, busy)) ? 'requeued' : 'ended'
}

/** Queues the item again after a pause, because the obstacle may be temporary. */
async function giveBack(relay: Relay, item: Item, reason: RequeueReason): Promise<Outcome> {
  if (reason.because === 'transfer-expired') await suspectMove(relay, item)
  return (await requeue(relay, item, reason)) || (await isStillOurs(relay, item)) ? 'wait' : 'ended'
}

/** Leaves the item to other channels. This one has a problem, and pays nothing until a check clears it. */
async function leaveChannel(relay: Relay, item: HeldItem, problem: ChannelProblem): Promise<Outcome> {
  await recordProblem(relay, item.channel, problem)
  log('info', 'channel unfit', { ...nameOf(item), problem })
  return (await requeue(relay, item, { because: 'channel-unfit' })) ? 'requeued' : 'ended'
}

/**
 * Leaves the item to other channels, because this one has too little for it. If none can have enough, the item is
 * doubted.
 */
async function passOn(relay: Relay, item: HeldItem): Promise<Outcome> {
  const unable = [...item.unable, item.channel]
  if (!(await isAnyAble(relay, unable))) {
    // A channel that owned nothing may have been paid since it was checked.
    await checkChannels(relay)
    if (!(await isAnyAble(relay, unable))) return await doubt(relay, item, ITEM_FAILURES.shortOnEveryChannel, unable)
  }
  return (await requeue(relay, item, { because: 'balance-short' })) ? 'requeued' : 'ended'
}

/**
 * A response that rules the item out may come from a lagging node. So the item is tried once more on every channel, when
 * no node can lag behind that response any more, and fails if the ledger still rules it out.
 */
async function doubt(relay: Relay, item: Item, error: string, unable = item.unable): Promise<Outcome> {
  if (item.doubtedLedger !== null) return await fail(relay, item, error, unable)
  log('info', 'item doubted', { ...nameOf(item), error })
  return await postpone(relay, item, await relay.ledger.readLatest())
}

async function postpone(relay: Relay, item: Item, ledger: number): Promise<Outcome> {
  const doubted = { because: 'doubted', ledger, pauseSeconds: relay.times.lag } as const
  return (await requeue(relay, item, doubted)) ? 'requeued' : 'ended'
}

async function fail(relay: Relay, item: Item, error: string, unable = item.unable): Promise<Outcome> {
  const ending: Ending = { status: 'failed', error, unable }
  const hasFailed = await end(relay, item, ending)
  if (hasFailed) log('info', 'item failed', { ...nameOf(item), error })
  return hasFailed || !(await isStillOurs(relay, item)) ? 'ended' : 'wait'
}

async function isStillOurs(relay: Relay, item: Item): Promise<boolean> {
  const row = await findItem(await relay.database(), item)
  return row?.attempt === item.attempt && (row.status === 'taken' || row.status === 'signed')
}
