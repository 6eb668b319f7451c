import { Address } from '@stellar/stellar-sdk'
import type { Database } from '#lib/db/connection.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { perProcess } from '#lib/observability/per-process.ts'
import { readInstance, settingOf } from '#lib/stellar/asset.ts'
import type { Network } from '#lib/stellar/network.ts'
import { claim, extendClaim, releaseClaim } from './claim.ts'
import { requireOwnNetwork } from './identity.ts'
import { fetchPayloads } from './payload.ts'
import { firstGap } from './ranges.ts'
import { readAgain } from './second-reading.ts'
import {
  fetchEvents,
  type LedgerHead,
  type RoundLimits,
  readLedgerHead,
  readWindow,
  requireSameNetwork,
} from './source.ts'
import { store } from './store.ts'
import { addRegistries, findRanges, findStreams, openStreams, type Stream } from './streams.ts'

/** The parts of the service that ingest the events of its token. */
export interface ArchiveContext {
  network: Network
  /** C-address of the confidential token */
  token: string
  database(): Promise<Database>
}

/** Ends a round even if events are missing: after this many pages of a stream and reading, or this many milliseconds. */
interface RoundOptions {
  maxPages?: number
  maxMs?: number
  /** only the events of the token that are missing: nothing of its registries, no payloads, and no second reading */
  isBrief?: boolean
}

/**
 * Stores the events that are missing: those of the token since the RPC's oldest ledger, and those of the registries that
 * it names. Reads each ledger a second time, later. Several processes may ingest at once, and each may be killed at any
 * point. Resolves to the number of events stored.
 * @throws LedgerError `unavailable`, once the streams that can be read have been
 */
export async function ingest(
  context: ArchiveContext,
  { maxPages = Number.POSITIVE_INFINITY, maxMs = Number.POSITIVE_INFINITY, isBrief = false }: RoundOptions = {},
): Promise<number> {
  const { network } = context
  const deadline = performance.now() + maxMs
  const db = await context.database()
  const window = await readWindow(network)
  await requireOwnNetwork(db, context, window)
  await openStreams(db, context, window)
  if (!isBrief) await addRegistries(db, context.token, await readRegistries(context))
  const heads = new Map<number, Promise<LedgerHead>>()
  // The streams end at the same ledger.
  const readHead = (sequence: number) => {
    const head = heads.get(sequence) ?? readLedgerHead(network, sequence)
    heads.set(sequence, head)
    // One stream's failure must not affect the others.
    head.catch(() => heads.delete(sequence))
    return head
  }
  const failures: unknown[] = []
  let stored = 0
  const streams = (await findStreams(db, context.token)).filter(({ role }) => role === 'token' || !isBrief)
  for (const stream of streams) {
    let claimedUntil = await claim(db, stream)
    if (!claimedUntil) continue
    const renew = async () => {
      claimedUntil = await extendClaim(db, stream)
    }
    try {
      const limits = { window, maxPages, deadline, readHead, renew }
      stored += await ingestStream(db, network, stream, limits)
      if (!isBrief) stored += await readAgain(db, network, stream, limits)
    } catch (error) {
      failures.push(error)
    } finally {
      await releaseClaim(db, stream, claimedUntil)
    }
  }
  const [token] = streams
  if (token && !isBrief) await fetchPayloads(db, network, token)
  if (failures.length > 0) throw failures[0]
  return stored
}

/** The registries that the token names now. If that cannot be read, they are known from its events alone. */
async function readRegistries({ network, token }: ArchiveContext): Promise<string[]> {
  const instance = await readInstance(network.server, token)
  return ['Verifier', 'Auditor'].flatMap((name) => {
    const setting = settingOf(instance, name)
    return setting?.type === 'scvAddress' ? [Address.fromScVal(setting).toString()] : []
  })
}

/** The RPC drops ledgers during a long catch-up, so its window is read again after this many pages. */
const WINDOW_PAGES = 20

async function ingestStream(
  db: Database,
  network: Network,
  stream: Stream,
  { window: first, maxPages, deadline, readHead, renew }: RoundLimits,
): Promise<number> {
  let window = first
  let stored = 0
  for (let pages = 0; pages < maxPages && (pages === 0 || performance.now() < deadline); pages += 1) {
    if (pages > 0 && pages % WINDOW_PAGES === 0) window = await readWindow(network)
    const ranges = await findRanges(db, [stream.id])
    const gap = firstGap(ranges, window.oldestLedger)
    if (gap.from > window.latestLedger) break
    const page = await fetchEvents(network, stream.contract, gap.from)
    const through = Math.min(page.through, (gap.before ?? Number.POSITIVE_INFINITY) - 1)
    if (through < gap.from) break
    const range = { events: page.events.filter(({ ledger }) => ledger <= through), through }
    const last = await readHead(through)
    await requireSameNetwork(range, readHead)
    const continues = ranges.some(({ throughLedger }) => throughLedger === gap.from - 1)
    const beginning = continues ? undefined : await readHead(gap.from)
    // Another process was faster: read the rows that it stored.
    if (!(await store(db, stream, { ...gap, first: beginning, last, page: range }))) continue
    stored += range.events.length
    await renew()
  }
  return stored
}

/** How long (ms) a round in the background may take: others wait for it, and a serverless function has a minute. */
export const ROUND_MS = 20_000

/** The minimum interval (ms) between two rounds started by settlements. */
const SOON_MS = 30_000

const lastRound = perProcess('archive round', (): { at?: number } => ({}))

/**
 * Ingests in the background after a settlement, at most once in 30 s: on serverless hosts the chores may run only once a
 * day. Failures are logged, and the next round resumes from the stored rows.
 */
export function ingestSoon(context: ArchiveContext): void {
  const now = performance.now()
  if (lastRound.at !== undefined && now - lastRound.at < SOON_MS) return
  lastRound.at = now
  ingest(context, { maxMs: ROUND_MS }).catch((error: unknown) =>
    log('error', 'archive', { failure: describeFailure(error) }),
  )
}
