import { eq, sql } from 'drizzle-orm'
import { paymentStops } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { log } from '#lib/observability/log.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import type { Network } from '#lib/stellar/network.ts'
import { readLedgerHead, readWindow, type Window } from './source.ts'
import { findTokenRanges, type StoredRange } from './streams.ts'

/** The further checks that must agree before a network counts as foreign: one of several nodes behind an address may be wrong. */
const CONFIRMATIONS = 3

/**
 * Whether the RPC serves a different network from the one that was ingested: if the network was reset and the database kept, its
 * rows are no longer true. A node that lags, or that was restored from a backup of the same
 * network, is not foreign. A ledger that a node lacks proves nothing.
 * @throws LedgerError `unavailable`
 */
export async function isForeignNetwork(
  db: Database,
  { network, token }: { network: Network; token: string },
  window?: Window,
  confirmations = CONFIRMATIONS,
): Promise<boolean> {
  const ranges = await findTokenRanges(db, token)
  if (ranges.length === 0) return false
  for (let checks = 0; checks <= confirmations; checks += 1) {
    if (!(await differs(network, ranges, window ?? (await readWindow(network))))) return false
  }
  return true
}

/**
 * True if the network's ledgers differ from the ingested ones: a ledger at the end of a range has another hash, or the
 * latest ledger is lower and closed later.
 */
async function differs(network: Network, ranges: readonly StoredRange[], window: Window): Promise<boolean> {
  const end = endsOf(ranges).findLast(({ sequence }) => isWithin(sequence, window))
  if (end && (await readLedgerHead(network, end.sequence)).hash !== end.hash) return true
  const last = ranges.at(-1)
  if (!last || window.latestLedger >= last.throughLedger) return false
  return (await readLedgerHead(network, window.latestLedger)).closedAt > last.throughClosedAt
}

const endsOf = (ranges: readonly StoredRange[]) =>
  ranges.flatMap(({ fromLedger, fromHash, throughLedger, throughHash }) => [
    { sequence: fromLedger, hash: fromHash },
    { sequence: throughLedger, hash: throughHash },
  ])

const isWithin = (sequence: number, { oldestLedger, latestLedger }: Window) =>
  sequence >= oldestLedger && sequence <= latestLedger

/**
 * Stops all payments if the network is foreign, and lets them continue if it no longer is, because only one node was wrong.
 * @throws LedgerError `unavailable` if it is foreign
 */
export async function requireOwnNetwork(
  db: Database,
  context: { network: Network; token: string },
  window: Window,
): Promise<void> {
  const isForeign = await isForeignNetwork(db, context, window)
  const { token } = context
  if (isForeign !== ((await foreignSince(db, token)) !== undefined)) {
    const since = isForeign ? sql`clock_timestamp()` : null
    await db
      .insert(paymentStops)
      .values({ token, foreignSince: since })
      .onConflictDoUpdate({ target: paymentStops.token, set: { foreignSince: since } })
    log(isForeign ? 'error' : 'info', 'network', { token, problem: isForeign ? FOREIGN : undefined })
  }
  if (isForeign) throw new LedgerError('unavailable', FOREIGN)
}

/** What is wrong, and what an operator can do about it. */
export const FOREIGN =
  'the RPC serves a different network from the one in this database: configure the right RPC, or start with an empty database (and delete DATA_DIR)'

/** When the network was found to be foreign; undefined while it is not. */
export async function foreignSince(db: Database, token: string): Promise<Date | undefined> {
  const [row] = await db
    .select({ since: paymentStops.foreignSince })
    .from(paymentStops)
    .where(eq(paymentStops.token, token))
  return row?.since ?? undefined
}
