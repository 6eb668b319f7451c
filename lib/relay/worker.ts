import { transact } from '#lib/db/connection.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import type { Opening } from '#lib/wallet/commitment.ts'
import { cancelNext, reserveNext, takeUp } from './holding.ts'
import { returnItem } from './item-ending.ts'
import { advanceItem } from './item-payment.ts'
import { findItem, type Item } from './items.ts'
import type { ItemMessage } from './queue.ts'
import type { Channel, Relay } from './relay.ts'
import { type Proved, proveAhead } from './signing.ts'

type HeldItem = Item & { channel: string }

/** An item that a worker of this process is paying, and with it its channel. */
interface Busy {
  item: HeldItem
  /** the channel's opening once the item is paid; undefined if this process has not signed the item's transfer */
  next: PromiseWithResolvers<Opening | undefined>
  ended: PromiseWithResolvers<void>
  hasFollower: boolean
}

/**
 * How many items may be proved ahead while they wait for a channel. Proofs are made one at a time, so more is no gain.
 */
const AHEAD = 2

/** How many messages a relay handles at once: an item on each channel, and a few whose proofs are made ahead. */
export const concurrencyOf = ({ channels }: Pick<Relay, 'channels'>) =>
  channels.length + Math.min(channels.length, AHEAD)

/** Handles messages: pays their items, each through a channel of its own, one after the other on each channel. */
export function openWorker(relay: Relay): (message: ItemMessage) => Promise<void> {
  const busy = new Map<string, Busy>()
  const isStopped = (message: ItemMessage) => relay.signal.aborted || message.signal.aborted

  return async (message) => {
    const deadline = performance.now() + relay.times.patience * 1000
    const isLate = () => performance.now() > deadline
    let proved: Proved | undefined
    let hasWaited = false
    for (;;) {
      try {
        // A message whose handler throws goes back to the queue, and another relay takes it at once.
        if (isStopped(message)) throw new Error('the relay is closing, or the message has gone to another worker')
        const taken = await takeUp(relay, message)
        if (taken === 'ended') return
        if (taken === 'doubted') return await defer(message, { seconds: relay.times.rest, isHeld: false })
        if (taken === 'no-channel') {
          const following = isLate() ? undefined : await follow(message)
          if (!following && hasWaited) return await defer(message, { seconds: relay.times.rest, isHeld: false })
          // A worker may just have taken a channel and not entered it in `busy` yet: after one pause it is there.
          if (!following) await pause(message)
          hasWaited = following === undefined
          proved = following?.proved
          continue
        }
        const outcome = await pay(message, taken.item, proved, isLate)
        proved = undefined
        if (outcome === 'done') return
        if (outcome === 'late') return await handOver(message)
      } catch (error) {
        if (isLate() || isStopped(message)) throw error
        log('info', 'item waits', { job: message.job, item: message.position, failure: describeFailure(error) })
        await pause(message)
      }
    }
  }

  /** Pays an item until it ends, loses its channel, or time is up. */
  async function pay(
    message: ItemMessage,
    taken: HeldItem,
    proved: Proved | undefined,
    isLate: () => boolean,
  ): Promise<'done' | 'free' | 'late'> {
    const entry: Busy = {
      item: taken,
      next: Promise.withResolvers(),
      ended: Promise.withResolvers(),
      hasFollower: false,
    }
    busy.set(taken.channel, entry)
    if (taken.status === 'signed') entry.next.resolve(undefined)
    let ahead = proved
    try {
      for (let item = taken; ; ) {
        const channel = relay.channels.find(({ address }) => address === item.channel)
        const outcome = await advanceItem(relay, { item, channel, proved: ahead, onSigned: entry.next.resolve })
        // A second transfer has a proof, and so a salt, of its own.
        ahead = undefined
        if (outcome !== 'wait') return outcome
        if (isLate()) return 'late'
        await pause(message)
        if (isStopped(message)) return 'free'
        const again = await takeUp(relay, item)
        if (again === 'ended') return 'done'
        if (typeof again === 'string' || again.item.channel !== item.channel) return 'free'
        item = again.item
      }
    } finally {
      if (busy.get(taken.channel) === entry) busy.delete(taken.channel)
      entry.next.resolve(undefined)
      entry.ended.resolve()
    }
  }

  /**
   * Used when no channel is free. Reserves a channel that this process is paying with, proves the item's transfer from
   * the balance that the channel will have, and waits until the channel is freed. The wait is bounded: this process
   * pays the item before, and ends it or hands it over within the same patience. Undefined if no channel could be
   * reserved, or the transfer could not be proved ahead.
   */
  async function follow(message: ItemMessage): Promise<{ proved: Proved | undefined } | undefined> {
    const item = await findItem(await relay.database(), message)
    if (!item) return undefined
    for (const channel of relay.channels) {
      const entry = busy.get(channel.address)
      if (!entry || entry.hasFollower || item.unable.includes(channel.address)) continue
      entry.hasFollower = true
      let follows = false
      try {
        const reserved = await reserveNext(relay, item, entry.item)
        if (!reserved) return undefined
        const opening = await entry.next.promise
        const proved = opening && (await prove(channel, reserved, opening))
        // After a failed proof another item may follow. Without an opening none can, and the channel stays marked.
        follows = proved !== undefined || opening === undefined
        if (proved) await entry.ended.promise
        else await cancelNext(relay, reserved)
        return follows ? { proved } : undefined
      } finally {
        entry.hasFollower = follows
      }
    }
    return undefined
  }

  async function prove(channel: Channel, item: Item, opening: Opening): Promise<Proved | undefined> {
    try {
      return await proveAhead(relay, channel, item, opening)
    } catch (error) {
      log('info', 'not proved ahead', { job: item.job, item: item.position, failure: describeFailure(error) })
      return undefined
    }
  }

  /** Leaves the item to another worker, which may reach the ledger or have a prover where this one does not. */
  async function handOver(message: ItemMessage): Promise<void> {
    const item = await findItem(await relay.database(), message)
    const isHeld = item?.status === 'signed'
    if (item?.status === 'taken') await returnItem(relay, item)
    await defer(message, { seconds: isHeld ? relay.times.retry : relay.times.rest, isHeld })
  }

  async function defer(message: ItemMessage, later: { seconds: number; isHeld: boolean }): Promise<void> {
    await transact(await relay.database(), (tx) => relay.queue.defer(tx, message, later))
  }

  async function pause(message: ItemMessage): Promise<void> {
    const until = performance.now() + relay.times.retry * 1000
    while (performance.now() < until && !isStopped(message)) await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
