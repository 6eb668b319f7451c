import type { Envelope } from './envelope.ts'
import { add, betterFee, compareRates, fits, isEmpty, NOTHING, type Room, roomOf, subtract } from './ledger-room.ts'

/** The room of a queue: a higher bid per operation replaces the lowest ones (core's limiter). */
interface QueueRoom {
  /**
   * The envelopes that the queue must drop so that `envelope` fits in place of `replaced`; or the whole fee that would be
   * enough, 0 if none would.
   */
  find(
    envelope: Envelope,
    replaced: Envelope | undefined,
  ): { readonly evicted: Envelope[] } | { readonly needed: bigint }
  add(envelope: Envelope): void
  remove(envelope: Envelope): void
  /** Until the next ledger, only a bid higher than that of `evicted` is accepted, even if there is room. */
  beat(evicted: Envelope): void
  forget(): void
}

export function openQueueRoom(limit: Room): QueueRoom {
  const pending = new Set<Envelope>()
  let taken = NOTHING
  let beaten: Envelope | undefined
  return {
    find(envelope, replaced) {
      if (beaten && compareRates(beaten, envelope) >= 0) return { needed: betterFee(envelope, beaten) }
      const wanted = replaced ? subtract(roomOf(envelope), roomOf(replaced)) : roomOf(envelope)
      if (!fits(wanted, limit)) return { needed: 0n }
      const evicted: Envelope[] = []
      let missing = subtract(add(taken, wanted), limit)
      if (isEmpty(missing)) return { evicted }
      for (const cheapest of Array.from(pending).toSorted(byRate)) {
        if (compareRates(cheapest, envelope) >= 0) return { needed: betterFee(envelope, cheapest) }
        if (cheapest.inner.source === envelope.inner.source) return { needed: 0n }
        evicted.push(cheapest)
        missing = subtract(missing, roomOf(cheapest))
        if (isEmpty(missing)) return { evicted }
      }
      return { needed: 0n }
    },
    add(envelope) {
      pending.add(envelope)
      taken = add(taken, roomOf(envelope))
    },
    remove(envelope) {
      if (pending.delete(envelope)) taken = subtract(taken, roomOf(envelope))
    },
    beat: (evicted) => {
      beaten = evicted
    },
    forget: () => {
      beaten = undefined
    },
  }
}

function byRate(left: Envelope, right: Envelope): number {
  return compareRates(left, right) || (left.fullHash < right.fullHash ? -1 : 1)
}
