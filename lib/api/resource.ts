import { databaseFailure } from '#lib/db/connection.ts'
import { discardBody, isBeyondDraining } from '#lib/http/body.ts'
import { allowReaders, preflight, type Readers } from '#lib/http/cors.ts'
import { requestIdOf } from '#lib/http/request-id.ts'
import { takeTurn } from '#lib/http/turns.ts'
import { describeFailure, log, withLogFields } from '#lib/observability/log.ts'
import { metrics } from '#lib/observability/metrics.ts'
import { Refusal, statusOf } from '#lib/refusal/refusal.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
export type Method = (typeof METHODS)[number]

/**
 * Resolves to the JSON body of a 200, or to a whole Response. Headers are added to that Response, so it must not be one
 * of Response.redirect() or fetch(), whose headers cannot change. Throws Refusal.
 */
export type Handler<Context> = (request: Request, context: Context) => Promise<unknown>

export interface ResourceOptions {
  /**
   * The fixed message of the 500 that stands for everything unexpected on this route, a dependency that is out of
   * reach included. Without it a bug is 500 `internal error` and an unreachable dependency 503.
   */
  failure?: string
  /** The path as the metrics name it, with `{name}` for a parameter. Without it requests are not measured. */
  route?: string
  /** The origins whose pages may read the answers. Default: `configured` */
  readers?: Readers
}

/**
 * The handlers of one route: the given ones, OPTIONS for CORS preflight, and a JSON 404 with Allow for the other
 * methods. Only here does the transport catch errors: it logs, maps a Refusal to its status, and hides every other
 * error behind a fixed 500.
 */
export function resource<Context = unknown>(
  handlers: Partial<Record<Method, Handler<Context>>>,
  options: ResourceOptions = {},
): Record<Method | 'OPTIONS', (request: Request, context: Context) => Promise<Response>> {
  const allow = [...METHODS.filter((method) => handlers[method]), 'OPTIONS'].join(', ')
  const isRoute = METHODS.some((method) => handlers[method])
  const { readers = 'configured' } = options
  const finish = (request: Request, response: Response, requestId: string) => {
    response.headers.set('X-Request-Id', requestId)
    if (!response.headers.has('Cache-Control')) response.headers.set('Cache-Control', 'no-store')
    return allowReaders(request, response, readers)
  }
  const respond = async (method: Method, request: Request, context: Context, requestId: string) => {
    const started = performance.now()
    const handler = handlers[method]
    const response = handler
      ? await answered(handler, request, context).catch((thrown) => presentFailure(request, thrown, options))
      : routeNotFound(request, isRoute ? allow : undefined)
    // A client that is refused over and over gets one answer in each turn, and others are served in between.
    if (response.status >= 400 && response.status < 500) await takeTurn('refusal')
    const ms = performance.now() - started
    log('info', 'request', {
      method: request.method,
      path: loggedPath(request),
      status: response.status,
      ms: Math.round(ms),
    })
    if (options.route !== undefined) measure(request.method, options.route, response.status, ms / 1000)
    discardBody(request)
    if (isBeyondDraining(request)) response.headers.set('Connection', 'close')
    return finish(request, response, requestId)
  }
  const answer = (method: Method) => (request: Request, context: Context) => {
    const requestId = requestIdOf(request.headers.get('x-request-id'))
    return withLogFields({ requestId }, () => respond(method, request, context, requestId))
  }
  return {
    GET: answer('GET'),
    POST: answer('POST'),
    PUT: answer('PUT'),
    PATCH: answer('PATCH'),
    DELETE: answer('DELETE'),
    OPTIONS: async (request) => finish(request, preflight(allow), requestIdOf(request.headers.get('x-request-id'))),
  }
}

/** Counts a request and how long it took, by route and not by path: clients can make up any number of paths. */
function measure(method: string, route: string, status: number, seconds: number): void {
  const { requests, requestSeconds } = metrics()
  requests.inc({ method, route, status: String(status) })
  requestSeconds.observe({ method, route }, seconds)
}

async function answered<Context>(handler: Handler<Context>, request: Request, context: Context): Promise<Response> {
  const body = await handler(request, context)
  return body instanceof Response ? body : Response.json(body)
}

/**
 * The path as the log may show it. Route names, ids and hashes are in lower case. Any other segment is hidden, because
 * it may be an invite's token, a seed or a session.
 */
function loggedPath(request: Request): string {
  const segments = new URL(request.url).pathname.split('/')
  return segments.map((segment) => (/^[a-z0-9._-]{0,64}$/.test(segment) ? segment : '…')).join('/')
}

/** The refusal that a failure is answered with: of a ledger or database out of reach too. */
function refusalOf(thrown: unknown): Refusal | undefined {
  if (thrown instanceof LedgerError) {
    const code = thrown.code === 'unavailable' ? 'unavailable' : 'not-wired'
    return new Refusal(code, thrown.message, { cause: thrown.cause ?? thrown })
  }
  const failure = databaseFailure(thrown)
  return failure instanceof Refusal ? failure : undefined
}

function presentFailure(request: Request, thrown: unknown, options: ResourceOptions): Response {
  const refusal = refusalOf(thrown)
  const status = refusal ? statusOf(refusal.code) : 500
  // The cause of a refusal is for the log alone: all of it for a 5xx, its first line if the caller is at fault.
  if (status >= 500 && (!refusal || refusal.cause !== undefined)) {
    log('error', 'failure', { path: loggedPath(request), failure: describeFailure(thrown) })
  } else if (refusal?.cause !== undefined) {
    const [reason] = describeFailure(refusal.cause).split('\n', 1)
    log('info', 'refusal', { path: loggedPath(request), refusal: refusal.message, reason })
  }
  if (options.failure && status >= 500 && status !== 501) {
    const { code = 'internal', details = {} } = refusal ?? {}
    return Response.json({ error: options.failure, code, ...details }, { status: 500 })
  }
  if (!refusal) return Response.json({ error: 'internal error', code: 'internal' }, { status: 500 })
  const headers = new Headers()
  if (status === 401) headers.set('WWW-Authenticate', 'Bearer')
  if (status === 429 || status === 503) headers.set('Retry-After', String(Math.ceil(refusal.retryAfter ?? 5)))
  const { message, code, details, fields, fieldsOmitted } = refusal
  const body = {
    error: message,
    code,
    ...details,
    ...(fields.length > 0 && { fields }),
    ...(fieldsOmitted > 0 && { fieldsOmitted }),
  }
  return Response.json(body, { status, headers })
}

/** The answer to a path, or to a method of a path, that does not exist. The message leaves the query out. */
export function routeNotFound(request: Request, allow?: string): Response {
  const path = new URL(request.url).pathname.replace(/^\/api(?=\/|$)/, '') || '/'
  return Response.json(
    { statusCode: 404, error: 'Not Found', message: `Route ${request.method}:${path} not found` },
    { status: 404, headers: allow ? { Allow: allow } : {} },
  )
}
