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

/** The terms under which a client delegates to the relay's channels. */
interface RunTerms {
  /** the key that amounts are sealed to */
  publicKey: PublicRelayKey
  channels: { address: string; available: boolean }[]
  maxChannels: number
  latestLedger: number
  /** how many ledgers a channel needs for each payout of a run */
  ledgersPerPayout: number
  /** how many ledgers a delegation must last beyond those of its own payouts */
  marginLedgers: number
}

/** Seconds between two payments of one channel: its ledger, and a proof on two processors. */
const PAYOUT_SECONDS = 15

/** How often a ledger usually closes, in seconds: the embedded ledger every second, testnet every five. */
const usualSeconds = ({ name }: Pick<Network, 'name'>): number => (name === 'testnet' ? 5 : 1)

/** A pace within this factor of the usual one counts as that: close times are whole seconds. */
const TOLERANCE = 1.25

/** The paces of networks whose ledgers were read for them. */
const measured = new WeakMap<LedgerView, number>()

/** How often a ledger closes, in seconds: as far as this process has seen it, or else as usual. */
function ledgerSeconds(network: Pick<Network, 'name' | 'view'>): number {
  const usual = usualSeconds(network)
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
export const ledgersPerPayout = (network: Pick<Network, 'name' | 'view'>): number =>
  Math.ceil(PAYOUT_SECONDS / ledgerSeconds(network))

/** How many ledgers close while a transaction that a relay signs is valid. */
export const validityLedgers = (network: Pick<Network, 'name' | 'view'>): number =>
  Math.ceil(RELAY_TIMES.validity / ledgerSeconds(network))

/**
 * How many ledgers a delegation must last beyond those of its own payouts: the last envelope must expire before it, and the
 * payouts that are queued already on the busiest channel come first.
 */
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
export async function findBusyChannels(db: Database, account: string, except?: string): Promise<Set<string>> {
  const busy = await db
    .selectDistinct({ channel: relayLines.spender })
    .from(relayLines)
    .innerJoin(relayJobs, eq(relayJobs.id, relayLines.job))
    .where(
      and(
        eq(relayJobs.status, 'running'),
        eq(relayLines.quotaAccount, account),
        except === undefined ? undefined : ne(relayJobs.id, except),
      ),
    )
  return new Set(busy.flatMap(({ channel }) => (channel === null ? [] : [channel])))
}

/**
 * Reads the terms of a run.
 * @throws Refusal `runs-not-wired` without a running relay that can pay from a delegation; LedgerError `unavailable`
 */
export async function readRunTerms(
  db: Database,
  given: { account: string; token: string; network: Network; key: PublicRelayKey; maxChannels: number },
): Promise<RunTerms> {
  const { account, token, network, key, maxChannels } = given
  const channels = await findRunChannels(db, token)
  if (!channels.some(({ isWired }) => isWired)) throw new Refusal('runs-not-wired')
  const busy = await findBusyChannels(db, account)
  const { sequence: latestLedger } = await readLatestLedger(network)
  return {
    publicKey: key,
    channels: channels.map(({ address, isAvailable }) => ({ address, available: isAvailable && !busy.has(address) })),
    maxChannels,
    latestLedger,
    marginLedgers: await readMarginLedgers(db, network),
    ledgersPerPayout: ledgersPerPayout(network),
  }
}

/** @throws Refusal `runs-not-wired` if no running relay can pay a run */
export async function requireRuns(db: Database, token: string): Promise<void> {
  if (!(await findRunChannels(db, token)).some(({ isWired }) => isWired)) throw new Refusal('runs-not-wired')
}

/** Every channel, with the reason why a run of this account cannot use it, or null. */
export async function judgeChannels(
  db: Database,
  { token, account }: { token: string; account: string },
): Promise<Map<string, 'channel-busy' | 'channel-unavailable' | null>> {
  const busy = await findBusyChannels(db, account)
  return new Map(
    (await findRunChannels(db, token)).map(({ address, isAvailable }) => {
      if (busy.has(address)) return [address, 'channel-busy']
      return [address, isAvailable ? null : 'channel-unavailable']
    }),
  )
}
