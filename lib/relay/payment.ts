import type { ChannelProblem } from '#drizzle/schema/relay.ts'
import { isUnreachable } from '#lib/db/connection.ts'
import { Refusal } from '#lib/http/refusal.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import type { Ending } from '#lib/sponsor/pending.ts'
import { type RefusalReason, SponsorRefusal } from '#lib/sponsor/refusal-reason.ts'
import { sponsorChannel } from '#lib/sponsor/transfer.ts'
import { forgetOpening, isAnybodyAble, noteProblem } from './channel-record.ts'
import { failItem, payItem, returnItem } from './item-ending.ts'
import { confirmItem, findItem, type Item } from './items.ts'
import type { Channel, Relay } from './relay.ts'
import { signItem } from './signing.ts'

/** What a lane learns from an item: it is done with; the channel is unfit for others too; or all of it must wait. */
export type Outcome = 'done' | 'unfit' | 'wait'

/** Takes an item one step of the way. Never throws: what cannot be reached is waited for. */
export async function advanceItem(relay: Relay, channel: Channel, item: Item): Promise<Outcome> {
  try {
    if (item.status === 'signed') return await send(relay, item)
    if (hasTriedEnough(item)) return await fail(relay, item, 'it was tried too often')
    const signing = await signItem(relay, channel, item)
    if (signing.kind === 'signed') return await send(relay, signing.item)
    if (signing.kind === 'unfit') return await passOn(relay, item, signing.problem)
    if (signing.kind === 'unpayable') return await fail(relay, item, signing.error)
    // Somebody else has the channel, and with it the item.
    if (signing.kind === 'moved') return 'wait'
    if (signing.kind === 'sealed') return await passUnopened(relay, item)
    return await retreat(relay, item)
  } catch (error) {
    const expected = isUnreachable(error) || (error instanceof Refusal && error.code === 'unavailable')
    log(expected ? 'info' : 'error', 'item waits', { ...nameOf(item), failure: describeFailure(error) })
    return 'wait'
  }
}

/** Every channel may be unable once; beyond that a handful of tries is for what comes and goes. */
const TRIES = 8
const hasTriedEnough = ({ attempt, unable }: Item) => attempt - unable.length > TRIES

const nameOf = ({ job, position, channel, innerHash }: Item) => ({
  job,
  item: position,
  channel: channel ?? undefined,
  hash: innerHash ?? undefined,
})

/** Has the stored transfer sponsored, as often as it takes: it is one and the same transfer each time. */
export async function send(relay: Relay, item: Item): Promise<Outcome> {
  const { channel, signedXdr, quotaAccount } = item
  if (channel === null || signedXdr === null) throw new Error('a signed item has no transfer')
  const db = await relay.database()
  const caller = { channel, quotaAccount, confirm: async (tx: typeof db) => confirmItem(tx, item, relay.now()) }
  try {
    return await conclude(relay, item, await sponsorChannel(db, relay.sponsor, caller, signedXdr))
  } catch (error) {
    if (error instanceof SponsorRefusal) return await answerRefusal(relay, item, error.reason, error.message)
    // Somebody else has moved the item on.
    if (error instanceof Refusal && error.code === 'conflict') return 'done'
    throw error
  }
}

async function conclude(relay: Relay, item: Item, ending: Ending): Promise<Outcome> {
  const db = await relay.database()
  // It may stay open for long, if the RPC cannot tell any more: the lane comes back to it, but not without a pause.
  if (ending === 'open') return 'wait'
  if (ending === 'rejected') {
    // It may still come until its time is over, so the item stays with it. As a rule its sequence number was used up.
    await noteProblem(db, relay.token, item.channel ?? '', 'sequence')
    log('info', 'channel refused by the network', nameOf(item))
    return 'wait'
  }
  if (ending.status === 'success' && ending.ledgerHash) {
    await payItem(db, item, ending.ledgerHash, relay.token, relay.now())
    log('info', 'item paid', nameOf(item))
    return 'done'
  }
  log('info', 'item to be paid again', { ...nameOf(item), status: ending.status, code: ending.resultCode ?? undefined })
  return await giveBack(relay, item, ending.ledgerHash ?? undefined)
}

/** Refusals that the next channel would get as well. */
const FINAL: ReadonlySet<RefusalReason> = new Set(['quota-transfers', 'quota-stroops', 'daily-budget'])
/** Those of a transfer that has waited too long, or whose channel has moved on: a fresh one is made. */
const PASSING: ReadonlySet<RefusalReason> = new Set([
  'would-fail',
  'expires-too-soon',
  'sequence',
  'too-few-resources',
  'no-account',
])

async function answerRefusal(relay: Relay, item: Item, reason: RefusalReason, message: string): Promise<Outcome> {
  // Short while other transfers are open, or until the sponsor is filled up: the item is as good as before.
  if (reason === 'float') return 'wait'
  if (PASSING.has(reason)) return await retreat(relay, item)
  if (!FINAL.has(reason)) log('error', 'sponsor refuses the relay', { ...nameOf(item), reason })
  return await fail(relay, item, message)
}

/** The same, and the lane takes its time: what stands in the way may have gone by then. */
async function retreat(relay: Relay, item: Item): Promise<Outcome> {
  await giveBack(relay, item)
  return 'wait'
}

/** The item goes back for any lane, and the channel's balance is read anew. */
async function giveBack(relay: Relay, item: Item, hash?: string): Promise<Outcome> {
  const db = await relay.database()
  const returned = await returnItem(db, item, hash === undefined ? {} : { hash })
  if (item.channel !== null) await forgetOpening(db, relay.token, item.channel)
  return returned || !(await isStillOurs(relay, item)) ? 'done' : 'wait'
}

/** The item is for other channels. When there is none left that might pay it, it has failed. */
async function passOn(relay: Relay, item: Item, problem: ChannelProblem): Promise<Outcome> {
  const db = await relay.database()
  const channel = item.channel ?? ''
  await noteProblem(db, relay.token, channel, problem)
  log('info', 'channel unfit', { ...nameOf(item), problem })
  const since = new Date(relay.now().getTime() - 1000 * (relay.times.sweep * 3))
  const able = await isAnybodyAble(db, relay.token, [...item.unable, channel], since)
  if (able || problem !== 'balance') await returnItem(db, item, { unable: problem === 'balance' })
  else await failItem(db, item, 'no channel has enough to pay it', relay.now())
  return problem === 'balance' ? 'done' : 'unfit'
}

/** An amount that was sealed to another key: other relays may have that. */
async function passUnopened(relay: Relay, item: Item): Promise<Outcome> {
  log('error', 'amount sealed to another key', nameOf(item))
  await returnItem(await relay.database(), item)
  return 'unfit'
}

async function fail(relay: Relay, item: Item, error: string): Promise<Outcome> {
  const failed = await failItem(await relay.database(), item, error, relay.now())
  if (failed) log('info', 'item failed', { ...nameOf(item), error })
  return failed || !(await isStillOurs(relay, item)) ? 'done' : 'wait'
}

async function isStillOurs(relay: Relay, item: Item): Promise<boolean> {
  const now = await findItem(await relay.database(), item)
  return now?.attempt === item.attempt && (now.status === 'taken' || now.status === 'signed')
}
