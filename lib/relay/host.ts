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
import { type Host, serveChannel } from './pay.ts'
import { storeMarkKeys } from './payment-mark.ts'
import { reconcile } from './reconcile.ts'
import { type Channel, keepTrying, type Relay, rest } from './relay.ts'
import { compareSequences } from './sequence.ts'
import { listenForLines } from './wake-up.ts'

export interface RelayHost {
  /** base URL of `/health` and the discovery document; undefined if the port could not be used */
  url: string | undefined
  close(): Promise<void>
}

/**
 * Starts a relay: the payments of its channels, their checks, and an HTTP server with two pages. Database and ledger may still be
 * out of reach.
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
  const url = await listenOn(server, given.port, given.host).catch((error: unknown) => {
    if (!given.mayBeMute) throw error
    log('error', 'relay', { problem: `RELAY_PORT ${given.port} cannot be used`, failure: describeFailure(error) })
    return undefined
  })
  const { prepare } = given
  const prepared = (prepare ? relay.channels : []).map((channel) =>
    keepTrying(
      relay,
      RETRY_SECONDS,
      async () => await prepare?.(channel),
      (error) => log('info', 'relay waits', { for: `channel ${channel.address}`, failure: describeFailure(error) }),
    ),
  )
  const host: Host = {
    isReady: () => isReady(relay, state),
    canRun: () => state.runProblem === null,
    wake: alarm.wait,
  }
  const paying = relay.channels.map((channel) => serveChannel(relay, channel, host))
  const listen = async () => await listenForLines(await relay.database(), alarm.ring)
  const listening = keepTrying(relay, RETRY_SECONDS, listen, logFailure('listenForLines'))
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

const RETRY_SECONDS = 2

/** How long a relay that stops waits for the steps in progress (ms): a prover that hangs must not keep the process. */
const CLOSE_DEADLINE_MS = 8_000

/** Announces, compares, reconciles and checks the channels, and wakes them when lines are due, until the relay stops. */
async function keepUp(relay: Relay, state: HostState, wake: () => void): Promise<void> {
  const { ledger, times, memory, sponsor } = relay
  const { tracker } = sponsor
  const addresses = relay.channels.map(({ address }) => address)
  let nextRound = 0
  let startedAt: DatabaseTime | undefined
  do {
    const isDue = performance.now() >= nextRound
    if (isDue) nextRound = performance.now() + times.chores * 1000
    const isKnown = tracker.view.isCurrent()
    if ((isDue && !isKnown) || !ledger.isReachable()) await ledger.check()
    checkClock(relay, state)
    if (isDue) await run('announceChannels', () => announce(relay, state))
    if ((isDue || !state.hasCompared) && ledger.isReachable()) {
      await run('compareSequences', async () => {
        startedAt ??= await readClock(await relay.database())
        // The first comparison shows everything that was applied until the start; later ones share the readings of the payments.
        const { readAccount } = state.hasCompared ? memory : tracker
        // The two clocks may differ: then the first one waits for longer, or shows a little less than it could.
        const begunAt = startedAt as number as LedgerTime
        await compareSequences({ ...relay, readAccount }, state.hasCompared ? 0 : await ledger.readClosedAfter(begunAt))
        state.hasCompared = true
      })
    }
    if (isDue && isReady(relay, state)) await run('reconcile', () => reconcile(relay))
    if (isDue && ledger.isReachable()) {
      await run('checkChannels', async () => {
        await checkChannels(relay)
        state.hasFit = await isAnyFit(relay)
      })
    }
    if (isReady(relay, state)) {
      await run('lines', async () => {
        if (await isWorkWaiting(relay)) wake()
        // The host that recorded them may have died.
        const open = await findOpenTransfers(await relay.database(), {
          condition: inArray(transfers.account, addresses),
        })
        void tracker.track(open, { waitMs: 0, lookUp: 'untracked' })
      })
    }
  } while (await rest(relay, Math.min(times.poll, times.chores)))
}

const isReady = ({ ledger }: Relay, { hasCompared }: HostState) => hasCompared && ledger.isReachable()

/** Announces the channels, and whether they can serve runs, which is known once the ledger has responded. */
async function announce(relay: Relay, state: HostState): Promise<void> {
  if (state.runProblem === undefined && relay.ledger.isReachable()) {
    await run('runProblem', async () => {
      state.runProblem = await relay.runProblem()
      if (state.runProblem !== null) log('info', 'relay serves no runs', { problem: state.runProblem })
    })
  }
  await openPayments(await relay.database(), relay.token)
  await announceChannels(relay, state.runProblem)
  await storeMarkKeys(relay)
}

const logFailure = (chore: string) => (error: unknown) =>
  log('info', 'chore', { chore, failure: describeFailure(error) })

/** Does a chore. If it fails, that is logged, and the others are still done. */
const run = (chore: string, work: () => Promise<void>): Promise<void> => work().catch(logFailure(chore))

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

async function listenOn(server: Server, port: number, host: string | undefined): Promise<string> {
  await once(server.listen(port, host), 'listening')
  if (host === '127.0.0.1') acceptIpv6Loopback(server)
  return `http://localhost:${(server.address() as AddressInfo).port}`
}
