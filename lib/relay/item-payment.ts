import { z } from 'zod'
import type { ChannelProblem } from '#drizzle/schema/relay.ts'
import { type Database, isUnreachable } from '#lib/db/connection.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { type RefusalReason, SponsorRefusal } from '#lib/refusal/sponsor-refusal.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import { isBehindAll } from '#lib/stellar/network.ts'
import { sponsorChannel } from '#lib/transfers/submit.ts'
import { isOfTheMoment } from '#lib/transfers/verification.ts'
import type { Opening } from '#lib/wallet/commitment.ts'
import { isAnyAble, keepBalance, noteProblem } from './channels.ts'
import { checkChannels } from './diagnosis.ts'
import { endUnknown, failItem, payItem, returnItem } from './item-ending.ts'
import { confirmItem, findItem, type Item } from './items.ts'
import type { Channel, Relay } from './relay.ts'
import { type Proved, signItem } from './signing.ts'

/**
 * The outcome of a step. `done`: the item has ended, or another worker has it. `free`: the item has no channel any
 * more, and may take another one at once. `wait`: the step is repeated after a pause. `late`: another worker takes
 * over.
 */
export type Outcome = 'done' | 'free' | 'wait' | 'late'

/**
 * An item with the channel that it holds. `channel` is undefined if this relay lacks its seed: the item is signed then.
 */
export interface Paying {
  item: Item
  channel: Channel | undefined
  /** a transfer that was proved ahead */
  proved: Proved | undefined
  /** receives the opening that the channel's balance will have once the item's transfer has applied */
  onSigned(next: Opening): void
}

/** Takes an item one step towards its payment. Never throws: after a failure this worker or another one tries again. */
export async function advanceItem(relay: Relay, paying: Paying): Promise<Outcome> {
  const { item, channel } = paying
  try {
    if (item.status === 'signed' || !channel) return await submit(relay, item)
    if (item.doubtedLedger !== null && !isBehindAll(item.doubtedLedger, await readLatestLedger(relay))) {
      return await putOff(relay, item, item.doubtedLedger)
    }
    const signing = await signItem(relay, channel, item, paying.proved)
    if (signing.kind === 'signed') {
      paying.onSigned(signing.next)
      return await submit(relay, signing.item)
    }
    if (signing.kind === 'moved') return 'done'
    if (signing.kind === 'unfit') return await leaveChannel(relay, item, signing.problem)
    if (signing.kind === 'short') return await passOn(relay, item)
    if (signing.kind === 'unpayable') return await doubt(relay, item, signing.error)
    if (signing.kind === 'stale') return await readAnew(relay, item)
    log('error', 'amount cannot be opened', nameOf(item))
    return 'late'
  } catch (error) {
    const expected = isUnreachable(error) || isUnavailable(error)
    log(expected ? 'info' : 'error', 'item waits', { ...nameOf(item), failure: describeFailure(error) })
    // A signed item waits for its transfer. An unsigned one goes to another worker, whose relay may have a working
    // prover.
    return expected || item.status === 'signed' ? 'wait' : 'late'
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

/**
 * Submits the stored transfer of an item through the sponsor. It may be repeated: the same transfer is paid for once.
 */
async function submit(relay: Relay, item: Item): Promise<Outcome> {
  const { channel, signedXdr: signedXDR, quotaAccount } = item
  if (channel === null || signedXDR === null) throw new Error('a signed item has no transfer')
  const { sponsor } = relay
  const context = { db: await relay.database(), sponsor, submission: sponsor.submission, patience: PATIENCE_MS }
  const confirm = (tx: Database) => confirmItem(tx, item, relay.now())
  const submitted = await sponsorChannel(context, { channel, quotaAccount, signedXDR, confirm }).catch(
    (error: unknown) => {
      if (error instanceof SponsorRefusal) return error
      if (error instanceof Refusal && error.code === 'conflict') return 'moved'
      throw error
    },
  )
  if (submitted === 'moved') return 'done'
  if (submitted instanceof SponsorRefusal) return await answerRefusal(relay, item, submitted)
  switch (submitted.status) {
    case 'open':
    // A refusal by the network decides nothing: the transfer may still apply until it expires.
    case 'refused':
      return 'wait'
    case 'succeeded':
      await payItem(relay, item, submitted.hash)
      log('info', 'item paid', nameOf(item))
      return 'done'
    case 'unknown':
      await endUnknown(relay, item, submitted.hash)
      log('error', 'item unknown', nameOf(item))
      return 'done'
    case 'failed':
      log('info', 'item to be paid again', { ...nameOf(item), status: 'failed', code: submitted.resultCode })
      return await payAgain(relay, item, submitted.hash)
    case 'expired':
      log('info', 'item to be paid again', { ...nameOf(item), status: 'expired' })
      return await giveBack(relay, item)
  }
}

/** The item fails with this many transfers that failed on the ledger: each of them has cost a fee. */
const MOST_FAILURES = 3

async function payAgain(relay: Relay, item: Item, hash: string): Promise<Outcome> {
  if (item.failures + 1 >= MOST_FAILURES) return await fail(relay, item, 'its transfer failed on the ledger too often')
  return await giveBack(relay, item, hash)
}

/** Refusals for a used-up quota: every channel would get them. Other refusals that end an item are logged as errors. */
const FINAL: ReadonlySet<RefusalReason> = new Set(['quota-transfers', 'quota-stroops', 'daily-budget'])
/** Refusals of a transfer that has waited too long, or whose channel has moved on: the item gets a new transfer. */
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
  if (PASSING.has(reason)) return await giveBack(relay, item)
  if (isOfTheMoment(reason)) return await doubt(relay, item, message)
  if (!FINAL.has(reason)) log('error', 'sponsor refuses the relay', { ...nameOf(item), reason })
  return await fail(relay, item, message)
}

/** Has the channel's balance read again: the RPC sees another balance than the stored one, and either may be behind. */
async function readAnew(relay: Relay, item: Item): Promise<Outcome> {
  if (item.channel !== null) await keepBalance(relay, item.channel, { readAt: null })
  return await giveBack(relay, item)
}

/** Queues the item again after a pause, because the obstacle may pass by itself. */
async function giveBack(relay: Relay, item: Item, hash?: string): Promise<Outcome> {
  const returned = await returnItem(relay, item, hash === undefined ? {} : { hash })
  return returned || (await isStillOurs(relay, item)) ? 'wait' : 'done'
}

/** Leaves the item to other channels. This one has a problem, and pays nothing until a check clears it. */
async function leaveChannel(relay: Relay, item: Item, problem: ChannelProblem): Promise<Outcome> {
  await noteProblem(relay, item.channel ?? '', problem)
  log('info', 'channel unfit', { ...nameOf(item), problem })
  return (await returnItem(relay, item)) ? 'free' : 'done'
}

/**
 * Leaves the item to other channels, because this one has too little for it. If none can have enough, the item is
 * doubted.
 */
async function passOn(relay: Relay, item: Item): Promise<Outcome> {
  const tried = [...item.unable, item.channel ?? '']
  const isNoneAble = async () => !(await isAnyAble(relay, tried))
  if (await isNoneAble()) {
    // A channel that owned nothing may have been paid since it was checked.
    await checkChannels(relay)
    if (await isNoneAble()) return await doubt(relay, item, 'no channel has enough to pay it', tried)
  }
  return (await returnItem(relay, item, { unable: true })) ? 'free' : 'done'
}

/**
 * An answer that speaks against the item may come from a lagging node. So the item is tried once more on every channel,
 * when no node can lag behind that answer any more, and fails if the ledger still speaks against it.
 */
async function doubt(relay: Relay, item: Item, error: string, unable = item.unable): Promise<Outcome> {
  if (item.doubtedLedger !== null) return await fail(relay, item, error, unable)
  log('info', 'item doubted', { ...nameOf(item), error })
  return await putOff(relay, item, await readLatestLedger(relay))
}

async function putOff(relay: Relay, item: Item, doubtedLedger: number): Promise<Outcome> {
  const doubtedUntil = new Date(relay.now().getTime() + relay.times.lag * 1000)
  return (await returnItem(relay, item, { doubt: { doubtedUntil, doubtedLedger } })) ? 'free' : 'done'
}

const LATEST = z.object({ sequence: z.number().int() })

/** @throws LedgerError `unavailable` */
async function readLatestLedger({ network }: Relay): Promise<number> {
  return (await network.call('getLatestLedger', {}, LATEST)).sequence
}

async function fail(relay: Relay, item: Item, error: string, unable = item.unable): Promise<Outcome> {
  const failed = await failItem(relay, item, error, unable)
  if (failed) log('info', 'item failed', { ...nameOf(item), error })
  return failed || !(await isStillOurs(relay, item)) ? 'done' : 'wait'
}

async function isStillOurs(relay: Relay, item: Item): Promise<boolean> {
  const now = await findItem(await relay.database(), item)
  return now?.attempt === item.attempt && (now.status === 'taken' || now.status === 'signed')
}
