import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { describeFailure, log } from '#lib/observability/log.ts'
import { answer, type Method, UnreadableBody } from '../rpc/json-rpc.ts'
import { readBody } from './body.ts'
import { type Funding, FundingRefused } from './friendbot.ts'

interface Endpoints {
  /** the RPC node for the next request, as behind a load balancer */
  readonly nextNode: () => Readonly<Record<string, Method>>
  /** Loads the verifier, which a call may need. */
  readonly ready: () => Promise<void>
  readonly friendbot: (address: string) => Promise<Funding>
  /** served as /deployment.json */
  readonly deployment: object
  /** all requests below /idp */
  readonly identity?: (request: IncomingMessage, response: ServerResponse) => void
}

/** bytes of a request body, as in stellar-rpc */
const MAX_BODY = 512 * 1024

/** /rpc, /friendbot, /deployment.json and /idp, open to every origin. */
export function answerRequests(endpoints: Endpoints): RequestListener {
  return (request, response) => {
    serve(endpoints, request, response).catch((cause) => {
      log('error', 'ledger http', { failure: describeFailure(cause) })
      if (!response.headersSent) response.writeHead(500)
      response.end()
    })
  }
}

async function serve(endpoints: Endpoints, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = URL.parse(request.url ?? '/', 'http://localhost')
  if (!url) return send(response, 404, { error: 'not found' })
  if (endpoints.identity && (url.pathname === '/idp' || url.pathname.startsWith('/idp/'))) {
    endpoints.identity(request, response)
    return
  }
  response.setHeader('Access-Control-Allow-Origin', '*')
  if (request.method === 'OPTIONS') return preflight(request, response)
  if (url.pathname === '/rpc') return await serveRpc(endpoints, request, response)
  if (url.pathname === '/friendbot') return await serveFriendbot(endpoints, url, request, response)
  if (url.pathname === '/deployment.json' && request.method === 'GET') return send(response, 200, endpoints.deployment)
  send(response, 404, { error: 'not found' })
}

async function serveRpc(
  { nextNode, ready }: Endpoints,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (request.method !== 'POST') return refuse(response, 405, { Allow: 'POST' })
  if (!isJson(request.headers['content-type'])) return refuse(response, 415)
  const body = await readBody(request, MAX_BODY)
  if (body === undefined) return refuse(response, 500, { Connection: 'close' })
  // Only these two run contracts and need the verifier. JSON can escape any letter.
  if (/"(simulate|send)Transaction"|\\u/.test(body)) await ready()
  try {
    const reply = await answer(body, nextNode())
    if (reply) send(response, 200, reply)
    else response.writeHead(204).end()
  } catch (cause) {
    if (!(cause instanceof UnreadableBody)) throw cause
    response.writeHead(500, { 'Content-Type': 'text/plain; charset=utf-8' }).end(`${cause.message}\n`)
  }
}

const BAD_REQUEST = { type: 'https://stellar.org/horizon-errors/bad_request', title: 'Bad Request', status: 400 }
const OVER_CAPACITY = {
  type: 'https://stellar.org/horizon-errors/server_over_capacity',
  title: 'Server Over Capacity',
  status: 503,
}

async function serveFriendbot(
  { friendbot }: Endpoints,
  url: URL,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (request.method !== 'GET' && request.method !== 'POST') return refuse(response, 405, { Allow: 'GET, POST' })
  const form = request.method === 'POST' ? new URLSearchParams(await readBody(request, MAX_BODY)) : undefined
  try {
    const { hash, envelopeXdr } = await friendbot(url.searchParams.get('addr') ?? form?.get('addr') ?? '')
    send(response, 200, { successful: true, hash, envelope_xdr: envelopeXdr })
  } catch (cause) {
    if (!(cause instanceof FundingRefused)) throw cause
    const { message: detail, field, isTemporary } = cause
    if (isTemporary) response.setHeader('Retry-After', 5)
    const problem = {
      ...(isTemporary ? OVER_CAPACITY : BAD_REQUEST),
      detail,
      ...(field === undefined ? {} : { extras: { invalid_field: field } }),
    }
    send(response, problem.status, problem, 'application/problem+json; charset=utf-8')
  }
}

function isJson(contentType = ''): boolean {
  const [type = '', ...parameters] = contentType.toLowerCase().split(';')
  const charset = parameters.map((one) => one.trim()).find((one) => one.startsWith('charset='))
  return type.trim() === 'application/json' && /^(charset="?utf-?8"?)?$/.test(charset ?? '')
}

function preflight(request: IncomingMessage, response: ServerResponse): void {
  const headers = request.headers['access-control-request-headers'] ?? '*'
  response
    .writeHead(204, { 'Access-Control-Allow-Methods': 'GET, POST', 'Access-Control-Allow-Headers': headers })
    .end()
}

function refuse(response: ServerResponse, status: number, headers: Record<string, string> = {}): void {
  response.writeHead(status, headers).end()
}

function send(response: ServerResponse, status: number, body: object, type = 'application/json'): void {
  const bytes = Buffer.from(JSON.stringify(body))
  response.writeHead(status, { 'Content-Type': type, 'Content-Length': bytes.length }).end(bytes)
}
