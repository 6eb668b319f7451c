import { setTimeout } from 'node:timers/promises'
import { z } from 'zod'
import { isCommitted } from '#lib/stellar/events.ts'
import { readLedgers } from '#lib/stellar/latest-ledger.ts'
import { LedgerError, ledgerUnreachable } from '#lib/stellar/ledger-error.ts'
import { type Network, RpcError } from '#lib/stellar/network.ts'

/** The ledgers whose events the RPC still has. */
export interface Window {
  oldestLedger: number
  latestLedger: number
}

/** @throws LedgerError `unavailable` */
export async function readWindow(network: Network): Promise<Window> {
  const { oldestLedger, latestLedger } = await readLedgers(network)
  return { oldestLedger, latestLedger }
}

/** How long (ms) a window is cached for callers that only report how far the archive is behind. */
const WINDOW_MS = 5_000

const windows = new WeakMap<object, { at: number; window: Promise<Window> }>()

/**
 * A window read at most five seconds ago, because anyone may request it as often as they like.
 * @throws LedgerError `unavailable`
 */
export function recentWindow(network: Network): Promise<Window> {
  const cache = windows.get(network)
  if (cache && performance.now() - cache.at < WINDOW_MS) return cache.window
  const window = readWindow(network)
  windows.set(network, { at: performance.now(), window })
  // Failures aren't cached.
  window.catch(() => windows.delete(network))
  return window
}

/** How many nodes are asked for a ledger, and the pause (ms) in between: a lagging node does not have it yet. */
const NODES = 4
const NODE_PAUSE_MS = 50

/**
 * Asks again if a node answers with an error: behind one address, the next request reaches another node, and one that lags rejects
 * a request for a ledger that the others have.
 */
async function askNodes<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await ask()
    } catch (error) {
      if (attempt === NODES || !(error instanceof LedgerError && error.cause instanceof RpcError)) throw error
      await setTimeout(NODE_PAUSE_MS)
    }
  }
}

const seconds = z.union([z.number().int(), z.string().regex(/^\d+$/)]).transform(Number)

/** A closed ledger: its hash (64 hex digits) and close time (unix seconds). */
export interface LedgerHead {
  sequence: number
  hash: string
  closedAt: number
}

const LEDGERS = z.object({
  ledgers: z
    .array(
      z.object({
        sequence: z.number().int(),
        hash: z.string().regex(/^[0-9a-f]{64}$/),
        ledgerCloseTime: seconds,
      }),
    )
    .length(1),
})

/**
 * The ledger `sequence`, from a node that has it.
 * @throws LedgerError `unavailable`, including when the RPC does not have this ledger
 */
export async function readLedgerHead(network: Network, sequence: number): Promise<LedgerHead> {
  const shape = LEDGERS.refine(
    ({ ledgers }) => ledgers[0]?.sequence === sequence,
    'another ledger than the requested one',
  )
  const request = { startLedger: sequence, pagination: { limit: 1 } }
  const { ledgers } = await askNodes(() => network.call('getLedgers', request, shape))
  const [{ hash, ledgerCloseTime: closedAt } = { hash: '', ledgerCloseTime: 0 }] = ledgers
  return { sequence, hash, closedAt }
}

/** How far a round reads the events of a stream. */
export interface RoundLimits {
  window: Window
  maxPages: number
  /** from performance.now() */
  deadline: number
  readHead: (sequence: number) => Promise<LedgerHead>
  /** extends the claim */
  renew: () => Promise<void>
}

/** A contract event as getEvents returns it. `topic` and `value` are base64 XDR. */
export interface NetworkEvent {
  /** `<toid>-<event index>`, both padded with zeros (SEP-35): ids sort in the order of the ledger */
  id: string
  ledger: number
  ledgerClosedAt: string
  txHash: string
  topic: string[]
  value: string
}

/** The events of some whole ledgers, ascending and without repetitions. */
export interface EventPage {
  events: NetworkEvent[]
  /** the last ledger whose events are all here; one before the first requested ledger if none is */
  through: number
}

const base64 = z.string().regex(/^[A-Za-z0-9+/]+={0,2}$/)
const ID = /^(\d{19})-(\d{10})$/

const EVENTS = z.object({
  events: z.array(
    z.object({
      id: z.string().regex(ID),
      ledger: z.number().int(),
      ledgerClosedAt: z.iso.datetime(),
      contractId: z.string(),
      txHash: z.string().regex(/^[0-9a-f]{64}$/),
      topic: z.array(base64),
      value: base64,
      inSuccessfulContractCall: z.boolean().optional(),
    }),
  ),
  cursor: z.string().regex(ID),
  latestLedger: z.number().int(),
})

/** Events in one response. Larger pages would parse for longer than other requests should wait. */
const PAGE_LIMIT = 1_000

/** The maximum number of requests for one page of whole ledgers: a ledger has far fewer events. */
const MAX_REQUESTS = 50

/** The transaction and operation bits, and the event index, of a cursor that ends its ledger. */
const LAST_IN_LEDGER = { place: 0xffff_ffffn, eventIndex: 4_294_967_295 }

/** An event's position from its id. */
export function positionOf(id: string): { toid: bigint; eventIndex: number } {
  const [, toid = '0', eventIndex = '0'] = ID.exec(id) ?? []
  return { toid: BigInt(toid), eventIndex: Number(eventIndex) }
}

export const ledgerOf = (toid: bigint): number => Number(toid >> 32n)

/**
 * Fetches the events of `contract` from ledger `from`, as far as one request reads: a node scans a few thousand ledgers
 * at a time. Reads further pages only while the first ledger is incomplete. Doesn't trust the order of events or a
 * claim that a page is complete: a ledger is complete once the cursor is past it.
 * @throws LedgerError `unavailable`, including when the page contradicts itself or `from` is outside the RPC's history
 */
export async function fetchEvents(network: Network, contract: string, from: number): Promise<EventPage> {
  const filters = [{ type: 'contract', contractIds: [contract] }]
  const found = new Map<string, NetworkEvent>()
  const shape = EVENTS.superRefine(({ events, latestLedger }, context) => {
    for (const event of events) {
      const isConsistent =
        event.contractId === contract &&
        event.ledger === ledgerOf(positionOf(event.id).toid) &&
        event.ledger >= from &&
        event.ledger <= latestLedger
      const earlier = found.get(event.id)
      if (!isConsistent || (earlier && earlier.txHash !== event.txHash)) {
        context.addIssue(`the event ${event.id} contradicts the request`)
      }
    }
  })
  let pagination: { limit: number; cursor?: string } = { limit: PAGE_LIMIT }
  let through = from - 1
  for (let requests = 0; requests < MAX_REQUESTS; requests += 1) {
    const start = pagination.cursor === undefined ? { startLedger: from } : {}
    const request = { ...start, filters, pagination }
    const page = await askNodes(() => network.call('getEvents', request, shape))
    for (const { contractId: _, inSuccessfulContractCall: __, ...event } of page.events.filter(isCommitted)) {
      found.set(event.id, event)
    }
    through = Math.max(through, Math.min(lastCompleteLedger(page.cursor), page.latestLedger))
    if (through >= from || page.cursor === pagination.cursor || page.events.length === 0) break
    pagination = { limit: PAGE_LIMIT, cursor: page.cursor }
  }
  const events = [...found.values()].filter(({ ledger }) => ledger <= through)
  return { events: events.sort((one, other) => (one.id < other.id ? -1 : 1)), through }
}

/** The last ledger that is entirely before a cursor. A cursor is the id of the last event, or the end of a ledger. */
function lastCompleteLedger(cursor: string): number {
  const { toid, eventIndex } = positionOf(cursor)
  const endsLedger = (toid & LAST_IN_LEDGER.place) === LAST_IN_LEDGER.place && eventIndex >= LAST_IN_LEDGER.eventIndex
  return endsLedger ? ledgerOf(toid) : ledgerOf(toid) - 1
}

/**
 * Behind one address, one node may serve another network with the same numbers. Events name no ledger hash, but they name
 * the time at which their ledger closed.
 * @throws LedgerError `unavailable`
 */
export async function requireSameNetwork(
  { events }: EventPage,
  readHead: (sequence: number) => Promise<LedgerHead>,
): Promise<void> {
  const last = events.at(-1)
  if (!last) return
  const { closedAt } = await readHead(last.ledger)
  if (closedAt !== Date.parse(last.ledgerClosedAt) / 1000) throw ledgerUnreachable(new Error('two networks respond'))
}

/**
 * Whether a ledger has closed: the RPC has it, or had it and has dropped it. The number of the latest ledger alone is not enough,
 * because a single wrong response must not end any line.
 * @throws LedgerError `unavailable`, including if the RPC lacks a ledger that it should have
 */
export async function hasClosed(network: Network, ledger: number): Promise<boolean> {
  const { oldestLedger, latestLedger } = await readWindow(network)
  if (latestLedger < ledger) return false
  await readLedgerHead(network, Math.max(ledger, oldestLedger))
  return true
}
