import { and, count, desc, eq, isNotNull, ne } from 'drizzle-orm'
import { relayJobs, relayLines } from '#drizzle/schema/relay.ts'
import { readLedgerHead, readWindow } from '#lib/archive/source.ts'
import type { PublicRelayKey } from '#lib/config/relay-key.ts'
import type { Database } from '#lib/db/connection.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { readLatestLedger } from '#lib/stellar/latest-ledger.ts'
import type { Network } from '#lib/stellar/network.ts'
import { LAG, type LedgerView } from '#lib/stellar/view.ts'
import { IS_OPEN_LINE } from '#lib/transfers/line.ts'
import { findRunChannels } from './channel-state.ts'
import { RELAY_TIMES } from './relay.ts'

/** Seconds between two payments of one channel: its ledger, and a proof on two processors. */
const PAYOUT_SECONDS = 15

/** A pace within this factor of the usual one counts as that: close times are whole seconds. */
const TOLERANCE = 1.25

/** The paces of networks whose ledgers were read for them. */
const measured = new WeakMap<LedgerView, number>()

type Pace = Pick<Network, 'name' | 'view'>

/** How often a ledger closes, in seconds: as far as this process has seen it, or else as usual. */
function ledgerSeconds(network: Pace): number {
  // The embedded ledger closes every second, testnet every five.
  const usual = network.name === 'testnet' ? 5 : 1
  const seen = network.view.secondsPerLedger() ?? measured.get(network.view) ?? usual
  return seen < usual * TOLERANCE && seen > usual / TOLERANCE ? usual : Math.max(seen, 0.05)
}

/** How many ledgers back the pace is measured by a process that follows no ledgers. */
const MEASURED_LEDGERS = 100

/** Measures how often ledgers close if this process has not followed enough of them. Without an answer the usual pace counts. */
async function measurePace(network: Network): Promise<void> {
  const { view } = network
  if (view.secondsPerLedger() !== undefined || measured.has(view)) return
  try {
    const { oldestLedger, latestLedger } = await readWindow(network)
    // A lagging node lacks the latest ledger of another.
    const last = latestLedger - LAG
    const since = Math.max(oldestLedger + 1, last - MEASURED_LEDGERS)
    if (last - since < MEASURED_LEDGERS / 4) return
    const [first, end] = await Promise.all([readLedgerHead(network, since), readLedgerHead(network, last)])
    measured.set(view, (end.closedAt - first.closedAt) / (end.sequence - first.sequence))
  } catch (error) {
    log('info', 'pace', { failure: describeFailure(error) })
  }
}

/** How many ledgers a channel needs for each payout of a run. */
export const ledgersPerPayout = (network: Pace): number => Math.ceil(PAYOUT_SECONDS / ledgerSeconds(network))

/** How many ledgers close while a transaction that a relay signs is valid. */
export const validityLedgers = (network: Pace): number => Math.ceil(RELAY_TIMES.validity / ledgerSeconds(network))

/** How many ledgers a delegation must outlast its payouts: an envelope's lifetime, and what is queued on the busiest channel. */
export async function readMarginLedgers(db: Database, network: Network): Promise<number> {
  await measurePace(network)
  const [busiest] = await db
    .select({ queued: count() })
    .from(relayLines)
    .where(and(isNotNull(relayLines.spender), IS_OPEN_LINE))
    .groupBy(relayLines.spender)
    .orderBy(desc(count()))
    .limit(1)
  return validityLedgers(network) + (busiest?.queued ?? 0) * ledgersPerPayout(network)
}

/** The channels that an unfinished run of this account names, other than `except`: their escrow belongs to that run. */
export async function findBusyChannels(db: Database, account: string, except?: string): Promise<Set<string | null>> {
  const isOther = except === undefined ? undefined : ne(relayJobs.id, except)
  const busy = await db
    .selectDistinct({ channel: relayLines.spender })
    .from(relayLines)
    .innerJoin(relayJobs, eq(relayJobs.id, relayLines.job))
    .where(and(eq(relayJobs.status, 'running'), eq(relayLines.quotaAccount, account), isOther))
  return new Set(busy.map(({ channel }) => channel))
}

/** @throws Refusal `runs-not-wired` if no running relay can pay a run */
export async function requireRuns(db: Database, token: string): Promise<void> {
  if (!(await findRunChannels(db, token)).some(({ isWired }) => isWired)) throw new Refusal('runs-not-wired')
}

/** Every channel, with the reason why a run of this account cannot use it, or null. */
export async function judgeChannels(db: Database, { token, account }: { token: string; account: string }) {
  const busy = await findBusyChannels(db, account)
  const judge = (address: string, isAvailable: boolean): 'channel-busy' | 'channel-unavailable' | null =>
    busy.has(address) ? 'channel-busy' : isAvailable ? null : 'channel-unavailable'
  const channels = await findRunChannels(db, token)
  return new Map(channels.map(({ address, isAvailable }) => [address, judge(address, isAvailable)]))
}

/**
 * Reads the terms under which a client delegates to the relay's channels.
 * @throws Refusal `runs-not-wired` without a running relay that can pay from a delegation; LedgerError `unavailable`
 */
export async function readRunTerms(
  db: Database,
  given: { account: string; token: string; network: Network; key: PublicRelayKey; maxChannels: number },
) {
  const { network, key, maxChannels } = given
  await requireRuns(db, given.token)
  const channels = [...(await judgeChannels(db, given))]
  const { sequence: latestLedger } = await readLatestLedger(network)
  return {
    publicKey: key,
    channels: channels.map(([address, reason]) => ({ address, available: reason === null })),
    maxChannels,
    latestLedger,
    marginLedgers: await readMarginLedgers(db, network),
    ledgersPerPayout: ledgersPerPayout(network),
  }
}
