import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { publicHalf } from '#lib/config/relay-key.ts'
import { acceptIpv6Loopback } from '#lib/http/loopback.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { announceChannels } from './channels.ts'
import { checkChannels } from './diagnosis.ts'
import type { Channel, Relay } from './relay.ts'
import { concurrencyOf, openWorker } from './worker.ts'

/** A running relay. */
export interface RelayHost {
  /** base URL of `/health` and the discovery document; undefined if the port could not be used */
  url: string | undefined
  close(): Promise<void>
}

/**
 * Starts a relay: its worker on the queue, the watch over its channels, and an HTTP server with two pages. Database and
 * ledger may still be out of reach.
 * @param given.port 0 for any free port
 * @param given.prepare makes a channel fit to pay; repeated until it succeeds
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
  const server = createServer((request, response) => {
    // Not parsed as a URL: `//` is a valid request and no valid URL.
    const [path = '/'] = (request.url ?? '/').split('?', 1)
    const page = request.method === 'GET' ? pages(relay, given.network)[path] : undefined
    const message = `Route ${request.method}:${path} not found`
    const body = page ?? { statusCode: 404, error: 'Not Found', message }
    response.writeHead(page ? 200 : 404, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
  })
  const url = await listen(server, given.port, given.host).catch((error: unknown) => {
    if (!given.mayBeMute) throw error
    log('error', 'relay', { problem: `RELAY_PORT ${given.port} cannot be used`, failure: describeFailure(error) })
    return undefined
  })
  const running = [work(relay), keepUp(relay)]
  const { prepare } = given
  if (prepare) {
    running.push(
      ...relay.channels.map((channel) => keepTrying(relay, `channel ${channel.address}`, () => prepare(channel))),
    )
  }
  return {
    url,
    close: async () => {
      given.end()
      server.closeAllConnections()
      server.close()
      await relay.queue.close()
      await Promise.race([Promise.all(running), setTimeout(CLOSE_DEADLINE_MS, undefined, { ref: false })])
    },
  }
}

/** How long the end of a relay waits for the steps under way (ms): a prover that hangs must not keep the process. */
const CLOSE_DEADLINE_MS = 8_000

/** Handles messages as soon as the queue can be reached. Resolves when the relay has ended and no item is in hand. */
async function work(relay: Relay): Promise<void> {
  const handle = openWorker(relay)
  const inHand = new Set<Promise<void>>()
  await keepTrying(relay, 'queue', async () => {
    await announceChannels(relay)
    await checkChannels(relay).catch((error: unknown) => log('info', 'channels', { failure: describeFailure(error) }))
    await relay.queue.work(concurrencyOf(relay), async (message) => {
      const handling = handle(message)
      inHand.add(handling)
      await handling.finally(() => inHand.delete(handling))
    })
  })
  if (!relay.signal.aborted) await once(relay.signal, 'abort')
  await Promise.allSettled([...inHand])
}

/** Announces and checks the channels in rounds, until the relay ends. Maintenance does what needs no channel's keys. */
async function keepUp(relay: Relay): Promise<void> {
  while (await rest(relay, relay.times.chores)) {
    for (const chore of [announceChannels, checkChannels]) {
      if (relay.signal.aborted) return
      await chore(relay).catch((error: unknown) => {
        log('info', 'chore', { chore: chore.name, failure: describeFailure(error) })
      })
    }
  }
}

/** The bodies of the relay's two public pages, by path. */
function pages(relay: Relay, network: string): Record<string, unknown> {
  return {
    '/health': { ok: true },
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
