import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { log } from '#lib/observability/log.ts'

/** The request header in which handlers find the client's address. What a client sends under this name is overwritten. */
const HEADER = 'x-client-address'

/** How long a client may take to send the headers, and then all of a request, in milliseconds. */
const PATIENCE = { headersMs: 10_000, requestMs: 30_000 }

/** The line that the log gets once when a request came through a proxy, or claims it, and no proxy is configured. */
const PROXY_UNKNOWN = 'a request has X-Forwarded-For, but TRUST_PROXY is 0: all clients of a proxy count as one'

/** Published by Node before any listener sees a request. */
const REQUEST_STARTS = 'http.server.request.start'

/**
 * Writes the client's address into every request that an HTTP server of this process receives. Ends the connection of a
 * request that is sent too slowly, since it holds memory, or whose body nothing reads. Next has no setting for either.
 * @param proxies how many proxies of the operator's stand in front; each appends its own client to `X-Forwarded-For`
 */
export function watchClients(proxies: number, patience = PATIENCE): () => void {
  let isTold = false
  const watch = (message: unknown) => {
    const { request, response, server } = message as Started
    server.headersTimeout = patience.headersMs
    server.requestTimeout = patience.requestMs
    const seen = request.socket.remoteAddress ?? ''
    request.headers[HEADER] = proxies === 0 ? seen : (forwardedFor(request, proxies) ?? seen)
    if (isWasted(request)) response.setHeader('Connection', 'close')
    if (proxies === 0 && !isTold && request.headers['x-forwarded-for'] !== undefined) {
      isTold = true
      log('error', 'proxy', { failure: PROXY_UNKNOWN })
    }
  }
  subscribe(REQUEST_STARTS, watch)
  return () => void unsubscribe(REQUEST_STARTS, watch)
}

interface Started {
  request: IncomingMessage
  response: ServerResponse
  server: Server
}

/** Bytes; more than any form of the pages holds. */
const LARGE = 1024 * 1024

/**
 * Whether nothing will read the body: it is not sent to the API, and is larger than a form. To keep the connection, Node
 * would read it to its end as fast as it comes, at the cost of other requests.
 */
function isWasted({ url, headers }: IncomingMessage): boolean {
  const size = headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : Infinity
  return size > LARGE && !url?.startsWith('/api/')
}

function forwardedFor({ headers }: IncomingMessage, proxies: number): string | undefined {
  const chain = String(headers['x-forwarded-for'] ?? '').split(',')
  return withoutPort(chain.at(-proxies)?.trim() ?? '') || undefined
}

/** Some proxies name the port as well: `192.0.2.1:5678`, `[2001:db8::1]:5678`. */
function withoutPort(entry: string): string {
  const [, bracketed] = /^\[(.*)\](?::\d+)?$/.exec(entry) ?? []
  return bracketed ?? entry.replace(/^([\d.]+):\d+$/, '$1')
}

/**
 * The client under which a request is counted: its IPv4 address, or the /64 network of its IPv6 address, all of which one
 * client has. Undefined where `watchClients` is not at work.
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
