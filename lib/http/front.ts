import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { type IncomingMessage, Server, type ServerResponse } from 'node:http'
import type { Server as NetServer, Socket } from 'node:net'
import { withLogFields } from '#lib/observability/log.ts'
import { withResponse } from '#lib/turns/response.ts'
import { allowReaders } from './cors.ts'
import { takeTurn } from './fairness.ts'
import { requestIdOf } from './request-id.ts'

/**
 * The paths outside /api with methods other than GET and HEAD: the targets of forms, and the files that wallets fetch.
 */
export const ROUTES: readonly string[] = [
  '/sign-in/password',
  '/sign-out',
  '/act',
  '/invite/email',
  '/invite/sign-in',
  '/.well-known/stellar.toml',
]

export type RouterStateReader = (header: string | string[] | undefined) => boolean

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

/**
 * Puts a listener in front of Next's. It responds to the requests for which Next would send a 500, never respond, or log
 * in full, and normalises the others. It finds the server at its first connection, since Next doesn't expose it.
 * @param port the port of Next's server; other servers of the process only ignore Upgrade
 * @param isDevelopment lets a browser reach the paths and the socket with which Next's development server updates pages
 * @param keepAliveMs how long an idle connection stays open
 * @param readsRouterState whether Next can read the header of its client router, or its absence: for another value, Next
 *   responds with a 500
 */
export function installFrontListener(
  port: number,
  isDevelopment = false,
  keepAliveMs = 65_000,
  readsRouterState: RouterStateReader = () => true,
): () => void {
  const seen = new WeakSet<NetServer>()
  const prepare = (server: unknown) => {
    if (!(server instanceof Server) || seen.has(server)) return
    seen.add(server)
    const address = server.address()
    const isNext = typeof address === 'object' && address?.port === port
    if (isNext && isDevelopment) Object.assign(server, { shouldUpgradeCallback: isDevelopmentRequest })
    else ignoreUpgrades(server)
    if (isNext) {
      server.keepAliveTimeout = keepAliveMs
      // Counted from the start of a connection: shorter, it would end an idle one.
      server.headersTimeout = Math.max(server.headersTimeout, keepAliveMs + 1_000)
    }
    if (isNext) intercept(server, isDevelopment ? isDevelopmentRequest : () => false, readsRouterState)
  }
  const onSocket = (message: unknown) => prepare((message as { socket: Socket & { server?: unknown } }).socket.server)
  // A connection may be older than the boot.
  const onRequest = (message: unknown) => prepare((message as { server: unknown }).server)
  subscribe('net.server.socket', onSocket)
  subscribe('http.server.request.start', onRequest)
  return () => {
    unsubscribe('net.server.socket', onSocket)
    unsubscribe('http.server.request.start', onRequest)
  }
}

/** Next never closes an upgrade request to an unknown path. Node treats the request as if it had no Upgrade header. */
export function ignoreUpgrades(server: Server): void {
  Object.assign(server, { shouldUpgradeCallback: () => false })
}

/** Whether a request is for the part of Next that only its development server has. */
function isDevelopmentRequest({ url = '' }: IncomingMessage): boolean {
  return url.startsWith('/_next/') || url.startsWith('/__nextjs_')
}

/**
 * Puts a filter in front of the server's request listeners: they get only the requests that they can handle, and those
 * that are `exempt`.
 */
function intercept(
  server: Server,
  exempt: (request: IncomingMessage) => boolean,
  readsRouterState: RouterStateReader,
): void {
  const listeners = server.listeners('request')
  server.removeAllListeners('request')
  server.on('request', (request, response) => {
    // The route handlers see the same ID.
    const requestId = requestIdOf(request.headers['x-request-id']?.toString())
    request.headers['x-request-id'] = requestId
    response.setHeader('X-Request-Id', requestId)
    // Node drops the bytes that a client sent after a request with Upgrade.
    if (request.headers.upgrade !== undefined) response.shouldKeepAlive = false
    const reply = exempt(request) ? undefined : screenRequest(request, readsRouterState)
    withLogFields({ requestId }, () => {
      if (reply) void send(request, response, reply)
      else {
        withResponse(response, () => {
          for (const listener of listeners) Reflect.apply(listener, server, [request, response])
        })
      }
    })
  })
}

/** A response of the front listener. Without `api` it is one line of text. */
interface Reply {
  status: number
  text: string
  headers?: Record<string, string>
  api?: true
}

/**
 * Rewrites the request so that Next can route it.
 * @returns the response to a request that Next must not see
 */
function screenRequest(request: IncomingMessage, readsRouterState: RouterStateReader): Reply | undefined {
  const { method = '', headers } = request
  const target = originForm(request.url ?? '')
  if (target === '*' && method === 'OPTIONS') return { status: 204, text: '', headers: { Allow: METHODS.join(', ') } }
  if (!target.startsWith('/')) return { status: 400, text: 'the request target is not a path' }
  const { path, query } = normalize(target)
  request.url = path + query
  if (/^\/api(\/|$)/.test(path)) {
    dropRouterHeaders(headers)
    // Next can't represent TRACE, and responds to other unknown methods without a body.
    return METHODS.includes(method)
      ? undefined
      : { status: 404, text: `Route ${method}:${path.slice(4) || '/'} not found`, api: true }
  }
  if (/^\/_next(\/|$)/.test(path) && !path.startsWith('/_next/static/')) return { status: 404, text: 'not found' }
  if (!readsRouterState(headers['next-router-state-tree'])) dropRouterHeaders(headers)
  if (ROUTES.includes(path.replace(/\/$/, '')) && METHODS.includes(method)) return undefined
  if (method !== 'GET' && method !== 'HEAD') {
    return { status: 405, text: 'a page has only GET and HEAD', headers: { Allow: 'GET, HEAD' } }
  }
  // Next would hold the body in memory, and log a line about it.
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0
  return hasBody ? { status: 400, text: 'a page takes no body' } : undefined
}

/** The path and query of an absolute target, as a proxy would send it (RFC 9112 §3.2.2). Other targets are unchanged. */
function originForm(target: string): string {
  if (!/^https?:\/\//i.test(target)) return target
  const url = URL.parse(target)
  return url ? url.pathname + url.search : target
}

/** Under /api repeated slashes count as one. A `%` without two hex digits is a plain character. */
function normalize(target: string): { path: string; query: string } {
  const [, rawPath = '', query = ''] = /^([^?#]*)(.*)$/s.exec(target) ?? []
  const single = rawPath.replaceAll(/[\\/]+/g, '/')
  const path = /^\/api(\/|$)/.test(single) ? single : rawPath
  return { path: isDecodable(path) ? path : path.replaceAll('%', '%25'), query }
}

function isDecodable(path: string): boolean {
  try {
    decodeURIComponent(path)
    return true
  } catch {
    return false
  }
}

/** Removes the headers of Next's client router: the API has no pages, and a malformed tree would be a 500. */
function dropRouterHeaders(headers: IncomingMessage['headers']): void {
  for (const name of Object.keys(headers)) if (/^(rsc|next-.*)$/.test(name)) delete headers[name]
}

async function send(request: IncomingMessage, response: ServerResponse, reply: Reply): Promise<void> {
  // A client that repeats such requests gets one response per turn of the event loop.
  await takeTurn('refusal')
  const { origin } = request.headers
  const headers = { ...reply.headers, 'X-Content-Type-Options': 'nosniff', 'Cache-Control': 'no-store' }
  const body = reply.api ? { statusCode: reply.status, error: 'Not Found', message: reply.text } : undefined
  const answer = body ? Response.json(body, { status: reply.status, headers }) : new Response(null, { headers })
  if (body) allowReaders(new Request('http://localhost', { headers: origin ? { origin } : {} }), answer, 'configured')
  response.setHeaders(answer.headers)
  if (!body) response.setHeader('Content-Type', 'text/plain; charset=utf-8')
  response.writeHead(reply.status)
  response.end(
    request.method === 'HEAD' || reply.status === 204 ? undefined : body ? JSON.stringify(body) : `${reply.text}\n`,
  )
}
