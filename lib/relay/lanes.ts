import type { Lease } from '#lib/db/leases.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { openHolder } from '#lib/wallet/keys.ts'
import { findBegunChannels } from './items.ts'
import { type LaneEnd, runLane } from './lane.ts'
import { countRelays, isThereWork, sayGone, sayPresent } from './presence.ts'
import type { Channel, Relay } from './relay.ts'

/** The lanes of one relay. */
export interface Lanes {
  /** There may be work: looks now, and not only at the next tick. */
  wake(): void
  /** Ends them; resolves when every channel has been let go. An item under way is left where it is. */
  stop(): Promise<void>
}

interface Lane {
  channel: Channel
  ending: Promise<void>
}

/** A third of the time for which a relay counts as present. */
const SAY_EVERY_MS = 3_000

/**
 * Keeps a lane running for every channel that can be had while there is work. Relays on one database share the channels
 * evenly: each lets go of what is more than its share as soon as an item is done.
 */
export function openLanes(relay: Relay): Lanes {
  const channels = relay.channels.map((signer) => ({
    ...openHolder(signer, relay.token),
    address: signer.publicKey(),
  }))
  const running = new Map<string, Lane>()
  const resting = new Map<string, number>()
  /** when the events of a channel were last read for their own sake */
  const readAt = new Map<string, number>()
  /** by channel: which start of a lane was its last, counted over all of them */
  const lastTurn = new Map<string, number>()
  let turns = 0
  let share = channels.length
  let presence: Lease | undefined
  let saidPresent = 0
  let stopped = false
  let looking: Promise<void> | undefined
  let again = false

  function wake(): void {
    if (stopped) return
    if (looking) again = true
    else looking = look()
  }

  async function look(): Promise<void> {
    do {
      again = false
      await dispatch().catch((error: unknown) => log('info', 'lanes', { failure: describeFailure(error) }))
    } while (again && !stopped)
    looking = undefined
  }

  async function dispatch(): Promise<void> {
    const db = await relay.database()
    if (Date.now() >= saidPresent + SAY_EVERY_MS) {
      presence = await sayPresent(db, relay.name, presence)
      saidPresent = Date.now()
    }
    share = Math.ceil(channels.length / Math.max(1, await countRelays(db)))
    const hasWork = await isThereWork(db)
    const order = inTurn(await findBegunChannels(db))
    const now = Date.now()
    // Whoever is refused a channel by another relay goes on to the next, so each starts elsewhere.
    for (const channel of order) {
      if (running.size >= share || stopped) return
      if (running.has(channel.address) || (resting.get(channel.address) ?? 0) > now) continue
      if (hasWork || isDue(channel)) start(channel)
    }
  }

  /**
   * A share is less than all, so the channels take turns: an item may be for one of them alone. What one has begun,
   * nobody else can end, so that comes first.
   */
  function inTurn(begun: ReadonlySet<string>): Channel[] {
    const rank = ({ address }: Channel) => (begun.has(address) ? 0 : 1)
    const turn = ({ address }: Channel) => lastTurn.get(address) ?? 0
    return channels.toSorted((one, other) => rank(one) - rank(other) || turn(one) - turn(other))
  }

  const isDue = ({ address }: Channel) => (readAt.get(address) ?? 0) + relay.times.refresh * 1000 <= Date.now()

  function start(channel: Channel): void {
    const { address } = channel
    turns += 1
    lastTurn.set(address, turns)
    const goesOn = () => !stopped && running.size <= share
    const refreshes = isDue(channel)
    const ending = runLane(relay, channel, { goesOn, refreshes })
      .catch((error: unknown): LaneEnd => {
        log('info', 'lane', { channel: address, failure: describeFailure(error) })
        return 'held'
      })
      .then((end) => {
        running.delete(address)
        if (refreshes && end !== 'held' && end !== 'unfit') readAt.set(address, Date.now())
        const seconds = { unfit: relay.times.rest, held: relay.times.tick, idle: 0, stopped: 0 }[end]
        resting.set(address, Date.now() + seconds * 1000)
        // A channel that somebody else has leaves room for another one of the share.
        if (end === 'held' || end === 'unfit') wake()
      })
    running.set(address, { channel, ending })
  }

  const timer = setInterval(wake, relay.times.tick * 1000)
  return {
    wake,
    stop: async () => {
      stopped = true
      clearInterval(timer)
      await looking
      await Promise.all([...running.values()].map(({ ending }) => ending))
      await sayGone(relay, presence)
    },
  }
}
