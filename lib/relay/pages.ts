import type { IncomingMessage, ServerResponse } from 'node:http'
import { PROMETHEUS_TYPE } from '#lib/prometheus.ts'
import { Refusal } from '#lib/refusal.ts'
import { publicHalf } from '#lib/relay-key.ts'
import type { Relay } from './relay.ts'

/**
 * Reads what the relay's process counts, in Prometheus's text format.
 * @throws Refusal `unauthenticated` for headers without the token
 */
export type ReadMetrics = (headers: Headers) => string

/** What there is to tell besides the relay itself. */
export interface PageTerms {
  /** the name of the network */
  network: string
  /** undefined where there is no page for it */
  readMetrics?: ReadMetrics | undefined
}

/** Answers a request for one of the relay's pages. */
export function answerPage(relay: Relay, terms: PageTerms, request: IncomingMessage, response: ServerResponse): void {
  // Not parsed as a URL: `//` is a valid request and no valid URL.
  const [path = '/'] = (request.url ?? '/').split('?', 1)
  const isGet = request.method === 'GET'
  const page = isGet ? publicPages(relay, terms.network)[path] : undefined
  if (page) sendJson(response, 200, page)
  else if (isGet && path === '/metrics' && terms.readMetrics) answerScrape(terms.readMetrics, request, response)
  else sendJson(response, 404, notFound(request.method, path))
}

/** What a relay says of itself to anybody. */
function publicPages(relay: Relay, network: string): Record<string, unknown> {
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

function answerScrape(readMetrics: ReadMetrics, { headers }: IncomingMessage, response: ServerResponse): void {
  const { authorization } = headers
  try {
    const text = readMetrics(new Headers(authorization === undefined ? {} : { authorization }))
    response.writeHead(200, { 'Content-Type': PROMETHEUS_TYPE, 'Cache-Control': 'no-store' }).end(text)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    response.setHeader('WWW-Authenticate', 'Bearer')
    sendJson(response, 401, { error: error.message })
  }
}

function notFound(method: string | undefined, path: string): unknown {
  return { statusCode: 404, error: 'Not Found', message: `Route ${method}:${path} not found` }
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
}
