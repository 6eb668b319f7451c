import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { publicHalf } from '#lib/config/relay-key.ts'
import { readClock } from '#lib/db/clock.ts'
import { acceptIpv6Loopback } from '#lib/http/loopback.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { announceChannels, canServe } from './channel-state.ts'
import { checkChannels } from './check.ts'
import { describeOffset } from './ledger.ts'
import type { ItemMessage } from './queue.ts'
import type { Channel, Relay } from './relay.ts'
import { carryOutReleases } from './release-request.ts'
import { compareSequences } from './sequence.ts'
import { concurrencyOf, openWorker } from './worker.ts'

export interface RelayHost {
  /** base URL of `/health` and the discovery document; undefined if the port could not be used */
  url: string | undefined
  close(): Promise<void>
}

/**
 * Starts a relay: its worker on the queue, the checks of its channels, and an HTTP server with two pages. Database and
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
  const intake = openIntake(relay)
  const server = createServer((request, response) => {
    // Not parsed as a URL: `//` is a valid request and not a valid URL.
    const [path = '/'] = (request.url ?? '/').split('?', 1)
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    const page = isRead ? pages(relay, intake, given.network)[path] : undefined
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
  const running = [keepUp(relay, intake), ...prepared]
  return {
    url,
    close: async () => {
      given.end()
      server.closeAllConnections()
      server.close()
      await relay.queue.close()
      const idle = Promise.all([...running, intake.whenIdle()])
      await Promise.race([idle, setTimeout(CLOSE_DEADLINE_MS, undefined, { ref: false })])
    },
  }
}

/** How long a relay that stops waits for the steps in progress (ms): a prover that hangs must not keep the process. */
const CLOSE_DEADLINE_MS = 8_000

/** Whether this relay fetches messages: only while it can serve them. */
interface Intake {
  /** why it serves no runs; null if it does, undefined until the ledger has responded */
  runProblem?: string | null
  isOpen(): boolean
  /** Opens or closes the intake, by the ledger's reachability and the channels' rows. */
  update(): Promise<void>
  /** Closes the intake if the ledger has become unreachable since the last update. */
  close(): Promise<void>
  whenIdle(): Promise<unknown>
}

function openIntake(relay: Relay): Intake {
  const handle = openWorker(relay)
  const inHand = new Set<Promise<void>>()
  let isOpen = false
  let turn = Promise.resolve()

  const handleAndCount = async (message: ItemMessage) => {
    const handling = handle(message)
    inHand.add(handling)
    await handling.finally(() => inHand.delete(handling))
  }

  async function set(wanted: boolean): Promise<void> {
    if (wanted === isOpen || relay.signal.aborted) return
    if (wanted) await relay.queue.work(concurrencyOf(relay), handleAndCount)
    else await relay.queue.pause()
    isOpen = wanted
    const problem = problemsOf(relay, { isOpen }).join('; ')
    log('info', wanted ? 'relay takes items' : 'relay takes no items', { problem: problem || undefined })
  }

  /** One change at a time: two calls could otherwise start two sets of workers. */
  function inTurn(change: () => Promise<void>): Promise<void> {
    const changed = turn.then(change)
    turn = changed.catch(() => undefined)
    return changed
  }

  return {
    isOpen: () => isOpen,
    update: () => inTurn(async () => set(relay.ledger.isReachable() && (await canServe(relay)))),
    close: () => inTurn(() => set(false)),
    whenIdle: () => Promise.allSettled([...inHand]),
  }
}

/** How often (s) an idle relay checks whether it can take items, and an active one whether it still can. */
const LOOK_SECONDS = 2

/**
 * Announces and checks the channels periodically, watches the ledger, and opens and closes the intake, until the relay
 * stops. Maintenance does the work that needs none of the channels' keys.
 */
async function keepUp(relay: Relay, intake: Intake): Promise<void> {
  let nextRound = 0
  let startedAt: number | undefined
  let hasCompared = false
  do {
    const isDue = performance.now() >= nextRound
    if (isDue) nextRound = performance.now() + relay.times.chores * 1000
    const isKnown = relay.sponsor.tracker.recency.isCurrent()
    if ((isDue && !isKnown) || !relay.ledger.isReachable()) await relay.ledger.check()
    if (!relay.ledger.isReachable()) await intake.close().catch(logFailure('intake'))
    if (isDue) await announce(relay, intake).catch(logFailure('announceChannels'))
    if ((isDue || !hasCompared) && relay.ledger.isReachable()) {
      const compare = async () => {
        startedAt ??= await readClock(await relay.database())
        await compareSequences(relay, hasCompared ? undefined : startedAt)
        hasCompared = true
      }
      await compare().catch(logFailure('compareSequences'))
    }
    if (hasCompared && relay.ledger.isReachable()) await carryOutReleases(relay).catch(logFailure('carryOutReleases'))
    if (isDue && relay.ledger.isReachable()) await checkChannels(relay).catch(logFailure('checkChannels'))
    if (hasCompared && (isDue || !intake.isOpen())) await intake.update().catch(logFailure('intake'))
  } while (await rest(relay, Math.min(LOOK_SECONDS, relay.times.chores)))
}

/** Announces the channels, and whether they can serve runs, which is known once the ledger has responded. */
async function announce(relay: Relay, intake: Intake): Promise<void> {
  if (intake.runProblem === undefined && relay.ledger.isReachable()) {
    await relay.runProblem().then((problem) => {
      intake.runProblem = problem
      if (problem !== null) log('info', 'relay serves no runs', { problem })
    }, logFailure('runProblem'))
  }
  await announceChannels(relay, intake.runProblem)
}

const logFailure = (chore: string) => (error: unknown) => {
  log('info', 'chore', { chore, failure: describeFailure(error) })
}

/** Why this host can't pay, for its health and its log. */
function problemsOf({ ledger }: Relay, { isOpen }: { isOpen: boolean }): string[] {
  const offset = ledger.offsetSeconds()
  const problem = offset === undefined ? undefined : describeOffset(offset)
  return [
    ...(ledger.isReachable() ? [] : ['the RPC does not respond: no items are taken']),
    ...(ledger.isReachable() && !isOpen ? ['no channel of this host can pay: no items are taken'] : []),
    ...(problem === undefined ? [] : [problem]),
  ]
}

/** The bodies of the relay's two public pages, by path. */
function pages(relay: Relay, intake: Intake, network: string): Record<string, unknown> {
  const problems = problemsOf(relay, { isOpen: intake.isOpen() })
  return {
    '/health': {
      ok: problems.length === 0,
      ledger: relay.ledger.isReachable(),
      clockOffsetSeconds: relay.ledger.offsetSeconds() ?? null,
      runs: intake.runProblem === null,
      problems: [...problems, ...(intake.runProblem ? [`no runs: ${intake.runProblem}`] : [])],
    },
    '/.well-known/disbursement-relay': {
      network,
      networkPassphrase: relay.network.passphrase,
      contracts: { token: relay.token },
      channels: relay.channels.map(({ address }) => address),
      publicKey: publicHalf(relay.key),
    },
  }
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
