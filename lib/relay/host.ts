import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { inArray } from 'drizzle-orm'
import { transfers } from '#drizzle/schema/transfers.ts'
import { type DatabaseTime, readClock } from '#lib/db/clock.ts'
import { acceptIpv6Loopback } from '#lib/http/loopback.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import type { LedgerTime } from '#lib/stellar/view.ts'
import { findOpenTransfers } from '#lib/transfers/rows.ts'
import { openPayments } from '#lib/transfers/stop.ts'
import { announceChannels, isAnyFit } from './channel-state.ts'
import { checkChannels } from './check.ts'
import { checkClock, type HostState, pages } from './host-pages.ts'
import { isWorkWaiting } from './lease.ts'
import { storeMarkKeys } from './mark-keys.ts'
import { type Host, serveChannel } from './pay.ts'
import { reconcile } from './reconcile.ts'
import type { Channel, Relay } from './relay.ts'
import { compareSequences } from './sequence.ts'
import { listenForLines } from './wake-up.ts'

export interface RelayHost {
  /** base URL of `/health` and the discovery document; undefined if the port could not be used */
  url: string | undefined
  close(): Promise<void>
}

/**
 * Starts a relay: the payments of its channels, their checks, and an HTTP server with two pages. Database and
 * ledger may still be out of reach.
 * @param given.port 0 for any free port
 * @param given.prepare prepares a channel to pay; repeated until it succeeds
 * @param given.end aborts `relay.signal`
 * @throws Error when the port cannot be used, unless `mayBeMute`
 */
export async function startHost(
  relay: Relay,
  given: {
    prepare?: (channel: Channel) => Promise<void>
    end: () => void
    /** the address to listen on; undefined for all */
    host?: string | undefined
    port: number
    network: string
    /** whether the relay works without its pages when the port cannot be used */
    mayBeMute: boolean
  },
): Promise<RelayHost> {
  const state: HostState = { hasCompared: false, hasFit: true, isClockWrong: false }
  const alarm = openAlarm(relay.signal)
  const server = createServer((request, response) => {
    // Not parsed as a URL: `//` is a valid request and not a valid URL.
    const [path = '/'] = (request.url ?? '/').split('?', 1)
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    const page = isRead ? pages(relay, state, given.network)[path] : undefined
    const message = `Route ${request.method}:${path} not found`
    const body = page ?? { statusCode: 404, error: 'Not Found', message }
    response.writeHead(page ? 200 : 404, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
  })
  const url = await listen(server, given.port, given.host).catch((error: unknown) => {
    if (!given.mayBeMute) throw error
    log('error', 'relay', { problem: `RELAY_PORT ${given.port} cannot be used`, failure: describeFailure(error) })
    return undefined
  })
  const { prepare } = given
  const prepared = (prepare ? relay.channels : []).map((channel) =>
    keepTrying(relay, `channel ${channel.address}`, async () => {
      await prepare?.(channel)
    }),
  )
  const host: Host = {
    isReady: () => isReady(relay, state),
    canRun: () => state.runProblem === null,
    wake: alarm.wait,
  }
  const paying = relay.channels.map((channel) => serveChannel(relay, channel, host))
  const listening = keepListening(relay, alarm.ring)
  const running = [keepUp(relay, state, alarm.ring), ...prepared, ...paying]
  return {
    url,
    close: async () => {
      given.end()
      server.closeAllConnections()
      server.close()
      const idle = Promise.all([...running, listening.then((listener) => listener?.close())])
      await Promise.race([idle, setTimeout(CLOSE_DEADLINE_MS, undefined, { ref: false })])
    },
  }
}

/** How long a relay that stops waits for the steps in progress (ms): a prover that hangs must not keep the process. */
const CLOSE_DEADLINE_MS = 8_000

/**
 * Announces and checks the channels periodically, watches the ledger, and wakes the channels when lines are due, until the relay
 * stops. Maintenance does the work that needs none of the channels' keys.
 */
async function keepUp(relay: Relay, state: HostState, wake: () => void): Promise<void> {
  const { tracker } = relay.sponsor
  const own = inArray(
    transfers.account,
    relay.channels.map(({ address }) => address),
  )
  let nextRound = 0
  let startedAt: DatabaseTime | undefined
  do {
    const isDue = performance.now() >= nextRound
    if (isDue) nextRound = performance.now() + relay.times.chores * 1000
    const isKnown = tracker.view.isCurrent()
    if ((isDue && !isKnown) || !relay.ledger.isReachable()) await relay.ledger.check()
    checkClock(relay, state)
    if (isDue) await announce(relay, state).catch(logFailure('announceChannels'))
    if ((isDue || !state.hasCompared) && relay.ledger.isReachable()) {
      const compare = async () => {
        startedAt ??= await readClock(await relay.database())
        // The first comparison shows everything that was applied until the start; later ones share the readings of the payments.
        const { readAccount } = state.hasCompared ? relay.memory : tracker
        // The two clocks may differ: then the first comparison waits for longer, or shows a little less than it could.
        const begunAt = startedAt as number as LedgerTime
        const atLeast = state.hasCompared ? 0 : await relay.ledger.readClosedAfter(begunAt)
        await compareSequences({ ...relay, readAccount }, atLeast)
        state.hasCompared = true
      }
      await compare().catch(logFailure('compareSequences'))
    }
    if (isDue && isReady(relay, state)) await reconcile(relay).catch(logFailure('reconcile'))
    if (isDue && relay.ledger.isReachable()) {
      await checkChannels(relay)
        .then(async () => {
          state.hasFit = await isAnyFit(relay)
        })
        .catch(logFailure('checkChannels'))
    }
    if (isReady(relay, state)) {
      const look = async () => {
        if (await isWorkWaiting(relay)) wake()
        // The host that recorded them may have died.
        const open = await findOpenTransfers(await relay.database(), { condition: own })
        void tracker.track(open, { waitMs: 0, lookUp: 'untracked' })
      }
      await look().catch(logFailure('lines'))
    }
  } while (await rest(relay, Math.min(relay.times.poll, relay.times.chores)))
}

const isReady = ({ ledger }: Relay, { hasCompared }: HostState) => hasCompared && ledger.isReachable()

/** Announces the channels, and whether they can serve runs, which is known once the ledger has responded. */
async function announce(relay: Relay, state: HostState): Promise<void> {
  if (state.runProblem === undefined && relay.ledger.isReachable()) {
    await relay.runProblem().then((problem) => {
      state.runProblem = problem
      if (problem !== null) log('info', 'relay serves no runs', { problem })
    }, logFailure('runProblem'))
  }
  await openPayments(await relay.database(), relay.token)
  await announceChannels(relay, state.runProblem)
  await storeMarkKeys(relay)
}

const logFailure = (chore: string) => (error: unknown) => {
  log('info', 'chore', { chore, failure: describeFailure(error) })
}

/** Wakes all channels that wait. A call that finds none waiting is not remembered. */
function openAlarm(signal: AbortSignal) {
  let next = Promise.withResolvers<void>()
  const ring = () => {
    next.resolve()
    next = Promise.withResolvers()
  }
  signal.addEventListener('abort', ring)
  return { ring, wait: () => (signal.aborted ? Promise.resolve() : next.promise) }
}

/** Listens for new lines, once the database can be reached. */
async function keepListening(relay: Relay, onLines: () => void) {
  do {
    try {
      return await listenForLines(await relay.database(), onLines)
    } catch (error) {
      logFailure('listenForLines')(error)
    }
  } while (await rest(relay, RETRY_SECONDS))
  return undefined
}

async function listen(server: Server, port: number, host: string | undefined): Promise<string> {
  await once(server.listen(port, host), 'listening')
  if (host === '127.0.0.1') acceptIpv6Loopback(server)
  return `http://localhost:${(server.address() as AddressInfo).port}`
}

const RETRY_SECONDS = 2

/** Repeats `attempt` until it succeeds or the relay ends. */
async function keepTrying(relay: Relay, name: string, attempt: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      if (relay.signal.aborted) return
      log('info', 'relay waits', { for: name, failure: describeFailure(error) })
    }
    if (!(await rest(relay, RETRY_SECONDS))) return
  }
}

/** Resolves to true after `seconds`, or to false as soon as the relay ends. */
const rest = ({ signal }: Relay, seconds: number): Promise<boolean> =>
  setTimeout(seconds * 1000, true, { signal }).catch(() => false)
