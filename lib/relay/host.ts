import { createServer, type Server } from 'node:http'
import { publicHalf } from '#lib/config/relay-key.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { announceChannels } from './channel-record.ts'
import { type Lanes, openLanes } from './lanes.ts'
import type { JobQueue } from './queue.ts'
import type { Relay } from './relay.ts'

/** A relay at work. */
export interface RelayHost {
  /** where `/health` and the discovery document are; undefined if nobody listens there */
  url: string | undefined
  /** There may be work. */
  wake(): void
  close(): Promise<void>
}

/**
 * Sets a relay to work: its lanes, its end of the queue, its sweep, and the two pages that it answers with. Neither
 * database nor ledger need be there yet.
 * @param port 0 for any
 * @throws Error when the port is taken
 */
export async function startHost(
  relay: Relay,
  given: {
    queue: JobQueue
    sweep: () => Promise<unknown>
    /** runs before the lanes do */
    prepare: () => Promise<void>
    port: number
    network: string
    /** a port that is taken is logged, and no reason not to work */
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
  const url = await listen(server, given.port).catch((error: unknown) => {
    if (!given.mayBeMute) throw error
    log('error', 'relay', { problem: `RELAY_PORT ${given.port} cannot be used`, failure: describeFailure(error) })
    return undefined
  })
  let lanes: Lanes | undefined
  let closed = false
  const wake = () => lanes?.wake()
  const opening = given.prepare().finally(() => {
    if (!closed) lanes = openLanes(relay)
    wake()
  })
  opening.catch((error: unknown) => log('error', 'channels', { failure: describeFailure(error) }))
  const listening = keepTrying('queue', () => given.queue.work(wake))
  const beat = repeat(relay.times.sweep, async () => {
    const addresses = relay.channels.map((channel) => channel.publicKey())
    await announceChannels(await relay.database(), relay.token, addresses, relay.now())
    wake()
    await given.sweep()
  })
  return {
    url,
    wake,
    close: async () => {
      closed = true
      listening.end()
      server.closeAllConnections()
      server.close()
      await beat.end()
      await lanes?.stop()
    },
  }
}

/** What a relay says of itself to anybody. */
function pages(relay: Relay, network: string): Record<string, unknown> {
  return {
    '/health': { ok: true },
    '/.well-known/disbursement-relay': {
      network,
      networkPassphrase: relay.network.passphrase,
      contracts: { token: relay.token },
      channels: relay.channels.map((channel) => channel.publicKey()),
      publicKey: publicHalf(relay.key),
    },
  }
}

function listen(server: Server, port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, () => {
      const address = server.address()
      if (typeof address !== 'object' || !address) return reject(new Error('no address'))
      resolve(`http://localhost:${address.port}`)
    })
  })
}

const RETRY_MS = 1_000

/** Does something once, as soon as it can be done. */
function keepTrying(name: string, work: () => Promise<void>): { end(): void } {
  let timer: NodeJS.Timeout | undefined
  let ended = false
  const attempt = () => {
    work().catch((error: unknown) => {
      log('info', 'relay waits', { for: name, failure: describeFailure(error) })
      if (!ended) timer = setTimeout(attempt, RETRY_MS)
    })
  }
  attempt()
  return {
    end: () => {
      ended = true
      clearTimeout(timer)
    },
  }
}

/** Does something now and every `seconds`, one at a time. */
function repeat(seconds: number, work: () => Promise<void>): { end(): Promise<void> } {
  let running: Promise<void> | undefined
  const beat = () => {
    running ??= work()
      .catch((error: unknown) => log('info', 'relay waits', { for: 'its beat', failure: describeFailure(error) }))
      .finally(() => {
        running = undefined
      })
  }
  const timer = setInterval(beat, seconds * 1000)
  beat()
  return {
    end: async () => {
      clearInterval(timer)
      await running
    },
  }
}
