import { setTimeout } from 'node:timers/promises'
import { transact } from '#lib/db/connection.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { cancelReservation, reserve } from './channel.ts'
import { findFree } from './channel-state.ts'
import { requeue, take } from './item.ts'
import { ItemError } from './item-error.ts'
import { findItem, type HeldItem, type Item } from './item-row.ts'
import { advanceItem, type Outcome } from './pay.ts'
import type { ItemMessage } from './queue.ts'
import type { Relay } from './relay.ts'
import { type AheadProof, type PaymentStart, proveAhead } from './sign.ts'

/** An item that this process is paying. */
interface Payment {
  item: HeldItem
  /**
   * the start of the next payment once the item is paid; undefined if this process has not signed the item's transfer
   */
  next: PromiseWithResolvers<PaymentStart | undefined>
  end: PromiseWithResolvers<void>
  /** whether the next item's proof is being generated ahead, or can't be */
  hasFollower: boolean
}

interface Worker {
  relay: Relay
  /** the payments of this process, by channel */
  payments: Map<string, Payment>
}

/** The handling of one message: how long it may take, and whether it has to stop. */
interface Shift {
  message: ItemMessage
  isLate(): boolean
  isStopped(): boolean
  /** Waits this many seconds, by default `retry`, or until the shift is stopped. */
  pause(seconds?: number): Promise<void>
}

/**
 * How many items may be proved ahead while they wait for a channel: enough for a run over five channels. A channel whose
 * next item is proved pays it in the next ledger.
 */
const AHEAD = 5

/** The maximum time (s) until a worker enters an item in `payments`, once the item has its channel. */
const TAKING_SECONDS = 0.1

/**
 * How many messages a relay handles at once: an item on each channel, and a few whose proofs are generated ahead of
 * time.
 */
export const concurrencyOf = ({ channels }: Pick<Relay, 'channels'>) =>
  channels.length + Math.min(channels.length, AHEAD)

/** Handles messages: pays their items, each through a separate channel, one at a time on each channel. */
export function openWorker(relay: Relay): (message: ItemMessage) => Promise<void> {
  const worker: Worker = { relay, payments: new Map() }
  return (message) => handle(worker, openShift(relay, message))
}

function openShift({ times, signal }: Relay, message: ItemMessage): Shift {
  const deadline = performance.now() + times.patience * 1000
  const isStopped = () => signal.aborted || message.signal.aborted
  return {
    message,
    isStopped,
    isLate: () => performance.now() > deadline,
    pause: async (seconds = times.retry) => {
      const until = performance.now() + seconds * 1000
      while (performance.now() < until && !isStopped()) await setTimeout(50)
    },
  }
}

async function handle(worker: Worker, shift: Shift): Promise<void> {
  const { relay } = worker
  const { message } = shift
  let proof: AheadProof | undefined
  let hasPaused = false
  for (;;) {
    try {
      // A message whose handler throws returns to the queue, and another relay takes it at once.
      if (shift.isStopped())
        throw new ItemError('relay-closing', 'the relay is closing, or another worker has the message')
      if (!relay.ledger.isReachable()) return await handOver(relay, shift)
      const item = await take(relay, message)
      if (item === 'ended') return
      if (item === 'unfit') return await leaveToOthers(relay, shift)
      if (item === 'doubted' || item === 'suspended') return await deferToRest(relay, message)
      if (item === 'busy') {
        const follower = shift.isLate() ? undefined : await follow(worker, message)
        if (!follower && hasPaused) return await leaveToOthers(relay, shift)
        // A worker may have just taken a channel without entering it in `payments` yet: after one pause it is there.
        if (!follower) await shift.pause(TAKING_SECONDS)
        hasPaused = follower === undefined
        proof = follower?.proof
        continue
      }
      const outcome = await pay(worker, shift, item, proof)
      proof = undefined
      if (outcome === 'ended') return
      if (outcome === 'hand-over') return await handOver(relay, shift)
    } catch (error) {
      if (shift.isLate() || shift.isStopped()) throw error
      log('info', 'item waits', { job: message.job, item: message.position, failure: describeFailure(error) })
      await shift.pause()
    }
  }
}

/** Pays an item until it ends, loses its channel, or time is up. */
async function pay(
  { relay, payments }: Worker,
  shift: Shift,
  taken: HeldItem,
  proof: AheadProof | undefined,
): Promise<Exclude<Outcome, 'wait'>> {
  const payment: Payment = {
    item: taken,
    next: Promise.withResolvers(),
    end: Promise.withResolvers(),
    hasFollower: false,
  }
  payments.set(taken.channel, payment)
  if (taken.status === 'signed') payment.next.resolve(undefined)
  let ahead = proof
  try {
    for (let item = taken; ; ) {
      const channel = relay.channels.find(({ address }) => address === item.channel)
      const outcome = await advanceItem(relay, { item, channel, proof: ahead, onSigned: payment.next.resolve })
      // A second transfer needs another proof, with another salt.
      ahead = undefined
      if (outcome !== 'wait') return outcome
      if (shift.isLate()) return 'hand-over'
      await shift.pause()
      if (shift.isStopped()) return 'requeued'
      if (!relay.ledger.isReachable()) return 'hand-over'
      const again = await take(relay, item)
      if (again === 'ended') return 'ended'
      if (typeof again === 'string' || again.channel !== item.channel) return 'requeued'
      item = again
    }
  } finally {
    if (payments.get(taken.channel) === payment) payments.delete(taken.channel)
    payment.next.resolve(undefined)
    payment.end.resolve()
  }
}

/**
 * Used when no channel is free. Reserves a channel that this process is paying with, proves the item's transfer from
 * the balance that the channel will have, and waits until the channel is released. The wait is bounded: this process
 * pays the previous item, and ends it or hands it over within the same patience. Undefined if no channel could be
 * reserved, or the transfer could not be proved ahead.
 */
async function follow(
  { relay, payments }: Worker,
  message: ItemMessage,
): Promise<{ proof: AheadProof | undefined } | undefined> {
  const item = await findItem(await relay.database(), message)
  if (!item) return undefined
  for (const channel of relay.channels) {
    const payment = payments.get(channel.address)
    const isUnable = item.unable.includes(channel.address) || (item.spender ?? channel.address) !== channel.address
    if (!payment || payment.hasFollower || isUnable) continue
    payment.hasFollower = true
    let follows = false
    try {
      const reserved = await reserve(relay, item, payment.item)
      if (!reserved) return undefined
      const start = await payment.next.promise
      const proof = start && (await tryToProve(() => proveAhead(relay, channel, reserved, start), reserved))
      // After a failed proof another item may follow. Without a start none can, and the channel stays marked.
      follows = proof !== undefined || start === undefined
      if (proof) await payment.end.promise
      else await cancelReservation(relay, reserved)
      return follows ? { proof } : undefined
    } finally {
      payment.hasFollower = follows
    }
  }
  return undefined
}

async function tryToProve(
  prove: () => Promise<AheadProof | undefined>,
  { job, position }: Item,
): Promise<AheadProof | undefined> {
  try {
    return await prove()
  } catch (error) {
    log('info', 'not proved ahead', { job, item: position, failure: describeFailure(error) })
    return undefined
  }
}

/** Gives the item to another worker, which may be able to reach the ledger or have a prover. */
async function handOver(relay: Relay, shift: Shift): Promise<void> {
  const { message } = shift
  const item = await findItem(await relay.database(), message)
  const isHeld = item?.status === 'signed'
  if (item?.status === 'taken') await requeue(relay, item, { because: 'handed-over' })
  if (isHeld && relay.ledger.isReachable()) return await defer(relay, message, { seconds: relay.times.retry, isHeld })
  await returnMessage(relay, shift, isHeld)
}

/** Returns the message at once if another relay has a free channel for its item, else defers it. */
async function leaveToOthers(relay: Relay, shift: Shift): Promise<void> {
  const { message } = shift
  const item = await findItem(await relay.database(), message)
  const free = item && (await findFree(relay, item))
  if (free === undefined) return await deferToRest(relay, message)
  // A channel of this relay has become free in the meantime: its next worker takes the message.
  if (relay.channels.some(({ address }) => address === free)) {
    return await defer(relay, message, { seconds: 0, isHeld: false })
  }
  await returnMessage(relay, shift, false)
}

const deferToRest = (relay: Relay, message: ItemMessage) =>
  defer(relay, message, { seconds: relay.times.rest, isHeld: false })

/**
 * Makes the message due at once, for another relay: this worker pauses before it takes the next one. A message with a
 * later due time would go to the relay that polls first, which might be the same one each time.
 */
async function returnMessage(relay: Relay, shift: Shift, isHeld: boolean): Promise<void> {
  await defer(relay, shift.message, { seconds: 0, isHeld })
  await shift.pause(relay.times.rest)
}

async function defer(relay: Relay, message: ItemMessage, later: { seconds: number; isHeld: boolean }): Promise<void> {
  await transact(await relay.database(), (tx) => relay.queue.defer(tx, message, later))
}
