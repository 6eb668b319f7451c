import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { log } from '#lib/observability/log.ts'

/** The request header that carries the client's address to handlers. A value that the client sends is overwritten. */
const HEADER = 'x-client-address'

/** How long a client may take to send the headers of a request, and the whole request. */
const PATIENCE = { headersMs: 10_000, requestMs: 30_000 }

/** Logged once, when a request claims to have been forwarded and no proxy is configured. */
const PROXY_UNKNOWN = 'a request has X-Forwarded-For, but TRUST_PROXY is 0: all clients of a proxy share one limit'

/** The channel on which Node publishes a request before it calls the listeners. */
const REQUEST_STARTS = 'http.server.request.start'

/**
 * Writes the client's address into every request that an HTTP server of this process receives. Closes the connection of a
 * request that arrives too slowly, since it holds memory, or whose body no handler reads. Next has no setting for either.
 * @param proxies how many proxies the operator runs in front; each appends its client to `X-Forwarded-For`
 */
export function watchClients(proxies: number, patience = PATIENCE): () => void {
  let hasWarned = false
  const watch = (message: unknown) => {
    const { request, response, server } = message as RequestStart
    server.headersTimeout = patience.headersMs
    server.requestTimeout = patience.requestMs
    const peer = request.socket.remoteAddress ?? ''
    request.headers[HEADER] = proxies === 0 ? peer : (forwardedFor(request, proxies) ?? peer)
    if (isUnread(request)) response.setHeader('Connection', 'close')
    if (proxies === 0 && !hasWarned && request.headers['x-forwarded-for'] !== undefined) {
      hasWarned = true
      log('error', 'proxy', { failure: PROXY_UNKNOWN })
    }
  }
  subscribe(REQUEST_STARTS, watch)
  return () => void unsubscribe(REQUEST_STARTS, watch)
}

interface RequestStart {
  request: IncomingMessage
  response: ServerResponse
  server: Server
}

/** Larger than any form that the pages send. */
const LARGE_BYTES = 1024 * 1024

/**
 * Whether no handler will read the body: it is not for the API, and larger than a form. To reuse the connection, Node
 * would read the body to its end at full speed, which slows down other requests.
 */
function isUnread({ url, headers }: IncomingMessage): boolean {
  const size = headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : Infinity
  return size > LARGE_BYTES && !url?.startsWith('/api/')
}

function forwardedFor({ headers }: IncomingMessage, proxies: number): string | undefined {
  const chain = String(headers['x-forwarded-for'] ?? '').split(',')
  return withoutPort(chain.at(-proxies)?.trim() ?? '') || undefined
}

/** Some proxies append the port: `192.0.2.1:5678`, `[2001:db8::1]:5678`. */
function withoutPort(entry: string): string {
  const [, bracketed] = /^\[(.*)\](?::\d+)?$/.exec(entry) ?? []
  return bracketed ?? entry.replace(/^([\d.]+):\d+$/, '$1')
}

/**
 * The client that a request is counted under: its IPv4 address, or the /64 network of its IPv6 address, since one client
 * has a whole /64. Undefined if `watchClients` has not seen the request.
 */
export function clientOf(headers: Headers): string | undefined {
  const address = headers.get(HEADER)?.replace(/^::ffff:/i, '')
  if (!address) return undefined
  return address.includes(':') ? networkOf(address) : address
}

function networkOf(address: string): string {
  const [head = '', tail] = address.toLowerCase().split('::', 2)
  const parts = head.split(':').filter(Boolean)
  const end = tail?.split(':').filter(Boolean) ?? []
  const zeros = tail === undefined ? [] : Array<string>(Math.max(0, 8 - parts.length - end.length)).fill('0')
  return [...parts, ...zeros, ...end].slice(0, 4).join(':')
}
