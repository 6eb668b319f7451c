import { databaseFailure } from '#lib/db/connection.ts'
import { discardBody, isBeyondDraining } from '#lib/http/body.ts'
import { allowReaders, preflight, type Readers } from '#lib/http/cors.ts'
import { takeTurn } from '#lib/http/fairness.ts'
import { requestIdOf } from '#lib/http/request-id.ts'
import { isEnding } from '#lib/observability/ending.ts'
import { describeFailure, log, withLogFields } from '#lib/observability/log.ts'
import { metrics } from '#lib/observability/metrics.ts'
import { Refusal, statusOf } from '#lib/refusal/refusal.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
export type Method = (typeof METHODS)[number]

/**
 * Resolves to the JSON body of a 200, or to a Response. Headers are added to that Response, so it must not come from
 * Response.redirect() or fetch(), whose headers are immutable. Throws Refusal.
 */
export type Handler<Context> = (request: Request, context: Context) => Promise<unknown>

/** When a method was announced to go (RFC 9745), and when it will stop working at the earliest (RFC 8594). */
export interface Deprecation {
  since: Date
  sunset: Date
}

export interface ResourceOptions {
  /**
   * The message of the 500 for every unexpected failure, an unreachable dependency included. Without it a bug is 500
   * `internal error`, and an unreachable dependency 503.
   */
  failure?: string
  /** A field for people in the body of a 500 `unavailable`. Used only with `failure`. */
  advice?: string
  /** The path in metrics, with `{name}` for a parameter. Without it requests are not measured. */
  route?: string
  /** The origins whose pages may read the responses. Default: `configured` */
  readers?: Readers
  deprecations?: Partial<Record<string, Deprecation>>
}

/**
 * The handlers of one route: `handlers`, OPTIONS for CORS preflight, and a JSON 404 with Allow for every other method.
 * This is the transport's only catch: it logs, maps a Refusal to its status, and hides any other error behind a fixed 500.
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
    // A client that asks again and again must not keep a process from ending by a connection that it keeps open.
    if (isEnding()) response.headers.set('Connection', 'close')
    if (!response.headers.has('Cache-Control')) response.headers.set('Cache-Control', 'no-store')
    announce(response.headers, options.deprecations?.[request.method])
    return allowReaders(request, response, readers)
  }
  const respond = async (method: Method, request: Request, context: Context, requestId: string) => {
    const started = performance.now()
    const handler = handlers[method]
    const response = handler
      ? await runHandler(handler, request, context).catch((thrown) => presentFailure(request, thrown, options))
      : routeNotFound(request, isRoute ? allow : undefined)
    // Send one 4xx per turn of the event loop, so that a flood of bad requests does not delay other clients.
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
  const respondTo = (method: Method) => (request: Request, context: Context) => {
    const requestId = requestIdOf(request.headers.get('x-request-id'))
    return withLogFields({ requestId }, () => respond(method, request, context, requestId))
  }
  return {
    GET: respondTo('GET'),
    POST: respondTo('POST'),
    PUT: respondTo('PUT'),
    PATCH: respondTo('PATCH'),
    DELETE: respondTo('DELETE'),
    OPTIONS: async (request) =>
      finish(request, preflight(request, allow), requestIdOf(request.headers.get('x-request-id'))),
  }
}

function announce(headers: Headers, deprecation: Deprecation | undefined): void {
  if (!deprecation) return
  headers.set('Deprecation', `@${Math.floor(deprecation.since.getTime() / 1000)}`)
  headers.set('Sunset', deprecation.sunset.toUTCString())
  headers.append('Link', '</docs/guides/releases>; rel="deprecation"; type="text/html"')
}

/** Counts and times a request by route: clients can invent any number of paths. */
function measure(method: string, route: string, status: number, seconds: number): void {
  const { requests, requestSeconds } = metrics()
  requests.inc({ method, route, status: String(status) })
  requestSeconds.observe({ method, route }, seconds)
}

async function runHandler<Context>(handler: Handler<Context>, request: Request, context: Context): Promise<Response> {
  const body = await handler(request, context)
  return body instanceof Response ? body : Response.json(body)
}

/**
 * The path for the log. Route names, ids and hashes are lower case. Any other segment is hidden, because it may be an
 * invite's token, a seed or a session.
 */
function loggedPath(request: Request): string {
  const segments = new URL(request.url).pathname.split('/')
  return segments.map((segment) => (/^[a-z0-9._-]{0,64}$/.test(segment) ? segment : '…')).join('/')
}

/** The refusal for a failure, including an unreachable ledger or database. */
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
  // Only the log shows the cause of a refusal: all of it for a 5xx, its first line for a 4xx.
  if (status >= 500 && (!refusal || refusal.cause !== undefined)) {
    log('error', 'failure', { path: loggedPath(request), failure: describeFailure(thrown) })
  } else if (refusal?.cause !== undefined) {
    const [reason] = describeFailure(refusal.cause).split('\n', 1)
    log('info', 'refusal', { path: loggedPath(request), refusal: refusal.message, reason })
  }
  if (options.failure && status >= 500 && status !== 501) {
    const { code = 'internal', details = {} } = refusal ?? {}
    const advice = code === 'unavailable' && options.advice !== undefined ? { advice: options.advice } : {}
    return Response.json({ error: options.failure, code, ...advice, ...details }, { status: 500 })
  }
  if (!refusal) return Response.json({ error: 'internal error', code: 'internal' }, { status: 500 })
  const headers = new Headers()
  if (status === 401) headers.set('WWW-Authenticate', 'Bearer')
  const { retryAfter = status === 429 || status === 503 ? 5 : undefined } = refusal
  if (retryAfter !== undefined) headers.set('Retry-After', String(Math.ceil(retryAfter)))
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

/** The response for an unknown path, or for an unknown method of a path. The message omits the query. */
export function routeNotFound(request: Request, allow?: string): Response {
  const path = new URL(request.url).pathname.replace(/^\/api(?=\/|$)/, '') || '/'
  return Response.json(
    { statusCode: 404, error: 'Not Found', message: `Route ${request.method}:${path} not found` },
    { status: 404, headers: allow ? { Allow: allow } : {} },
  )
}
