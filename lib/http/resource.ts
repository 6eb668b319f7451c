import type { z } from 'zod'
import { databaseFailure } from '#lib/db/connection.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { allowReaders, preflight, type Readers } from './cors.ts'
import { Refusal, type RefusalCode } from './refusal.ts'
import { measureRequest } from './request-measure.ts'

const STATUS = {
  malformed: 400,
  unauthenticated: 401,
  forbidden: 403,
  'not-found': 404,
  conflict: 409,
  'too-large': 413,
  'unsupported-media': 415,
  refused: 422,
  'too-soon': 429,
  failed: 500,
  'not-wired': 501,
  unavailable: 503,
} as const satisfies Record<RefusalCode, number>

/** The HTTP status of a refusal. */
export const statusOf = (code: RefusalCode): number => STATUS[code]

const BODY_LIMIT = 256 * 1024
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
type Method = (typeof METHODS)[number]

/** Answers a request with what becomes the JSON body of a 200, or with a whole Response. Throws Refusal. */
export type Handler<Context> = (request: Request, context: Context) => Promise<unknown>

export interface ResourceOptions {
  /**
   * The fixed message of the 500 that stands for everything unexpected on this route, a dependency that is out of
   * reach included. Without it a bug is 500 `internal error` and an unreachable dependency 503.
   */
  failure?: string
  /** Whose pages may read the answers. Default: `configured` */
  readers?: Readers
}

/**
 * The handlers of one route: what is given, OPTIONS for CORS preflight, and a JSON 404 with Allow for the methods
 * that are not there. It is the only place of the transport that catches: it logs, maps a Refusal to its status,
 * and hides everything else behind a fixed 500.
 */
export function resource<Context = unknown>(
  handlers: Partial<Record<Method, Handler<Context>>>,
  options: ResourceOptions = {},
): Record<Method | 'OPTIONS', (request: Request, context: Context) => Promise<Response>> {
  const allow = [...METHODS.filter((method) => handlers[method]), 'OPTIONS'].join(', ')
  const { readers = 'configured' } = options
  const answer = (method: Method) => async (request: Request, context: Context) => {
    const started = performance.now()
    const handler = handlers[method]
    const response = handler
      ? await answered(handler, request, context).catch((thrown) => presentFailure(request, thrown, options))
      : routeNotFound(request, allow)
    const ms = performance.now() - started
    log('info', 'request', {
      method: request.method,
      path: loggedPath(request),
      status: response.status,
      ms: Math.round(ms),
    })
    await measureRequest(request, context, { status: response.status, seconds: ms / 1000 })
    return allowReaders(request, response, readers)
  }
  return {
    GET: answer('GET'),
    POST: answer('POST'),
    PUT: answer('PUT'),
    PATCH: answer('PATCH'),
    DELETE: answer('DELETE'),
    OPTIONS: async (request) => allowReaders(request, preflight(allow), readers),
  }
}

async function answered<Context>(handler: Handler<Context>, request: Request, context: Context): Promise<Response> {
  const body = await handler(request, context)
  // A copy of a Response, since those of Response.redirect() and of fetch() cannot be given headers.
  return body instanceof Response ? new Response(body.body, body) : Response.json(body)
}

/**
 * The path as the log may show it: names, ids and hashes of ours are written in lower case, and whatever is not may be
 * an invite's token, a seed or a session.
 */
function loggedPath(request: Request): string {
  const segments = new URL(request.url).pathname.split('/')
  return segments.map((segment) => (/^[a-z0-9._-]{0,64}$/.test(segment) ? segment : '…')).join('/')
}

function presentFailure(request: Request, thrown: unknown, options: ResourceOptions): Response {
  const failure = databaseFailure(thrown)
  const refusal = failure instanceof Refusal ? failure : undefined
  const status = refusal ? STATUS[refusal.code] : 500
  // Refusals that have a cause say less to the caller than to the log; one that is the caller's own doing says a line.
  if (status >= 500 && (!refusal || refusal.cause !== undefined)) {
    log('error', 'failure', { path: loggedPath(request), failure: describeFailure(thrown) })
  } else if (refusal?.cause !== undefined) {
    const [reason] = describeFailure(refusal.cause).split('\n', 1)
    log('info', 'refusal', { path: loggedPath(request), refusal: refusal.message, reason })
  }
  if (options.failure && status >= 500 && status !== 501) {
    return Response.json({ error: options.failure }, { status: 500 })
  }
  if (!refusal) return Response.json({ error: 'internal error' }, { status: 500 })
  const headers = new Headers()
  if (status === 401) headers.set('WWW-Authenticate', 'Bearer')
  if (status === 429 || status === 503) headers.set('Retry-After', String(Math.ceil(refusal.retryAfter ?? 5)))
  return Response.json({ error: refusal.message }, { status, headers })
}

/** The answer to a path, or to a method of a path, that does not exist. The message leaves the query out. */
export function routeNotFound(request: Request, allow?: string): Response {
  const path = new URL(request.url).pathname.replace(/^\/api(?=\/|$)/, '') || '/'
  return Response.json(
    { statusCode: 404, error: 'Not Found', message: `Route ${request.method}:${path} not found` },
    { status: 404, headers: allow ? { Allow: allow } : {} },
  )
}

/**
 * The JSON body of a request, parsed by `schema`. No body counts as `{}`, whatever its content type. At most 256 KiB,
 * counted while streaming, since Content-Length is only a claim.
 * @param otherwise the message for a body of any other type
 * @throws Refusal too-large, unsupported-media, or malformed with a message that names the field
 */
export async function readJson<Schema extends z.ZodType>(
  request: Request,
  schema: Schema,
  otherwise = 'the body must be application/json',
): Promise<z.output<Schema>> {
  const bytes = await readBody(request)
  if (bytes.length === 0) return parse(schema, {})
  if (mediaType(request) !== 'application/json') throw new Refusal('unsupported-media', otherwise)
  return parse(schema, decodeJson(bytes))
}

/** The same, or the fields of a form (application/x-www-form-urlencoded), as SEP-10 wants it. */
export async function readJsonOrForm<Schema extends z.ZodType>(
  request: Request,
  schema: Schema,
): Promise<z.output<Schema>> {
  if (isForm(request)) return await readForm(request, schema)
  return await readJson(request, schema, 'the body must be application/json or application/x-www-form-urlencoded')
}

/**
 * The fields of a form (application/x-www-form-urlencoded), parsed by `schema`; of a repeated field the first counts.
 * @throws Refusal too-large, unsupported-media, or malformed
 */
export async function readForm<Schema extends z.ZodType>(request: Request, schema: Schema): Promise<z.output<Schema>> {
  const bytes = await readBody(request)
  if (!isForm(request)) throw new Refusal('unsupported-media', 'the body must be application/x-www-form-urlencoded')
  return parse(schema, firstOfEach(new URLSearchParams(decodeText(bytes))))
}

const isForm = (request: Request) => mediaType(request) === 'application/x-www-form-urlencoded'

function mediaType(request: Request): string | undefined {
  return request.headers.get('content-type')?.split(';', 1)[0]?.trim().toLowerCase()
}

/** The query of a request, parsed by `schema`; of a repeated parameter the first counts. */
export function readQuery<Schema extends z.ZodType>(request: Request, schema: Schema): z.output<Schema> {
  return parse(schema, firstOfEach(new URL(request.url).searchParams))
}

function firstOfEach(parameters: URLSearchParams): Record<string, string> {
  const first: Record<string, string> = {}
  for (const [name, value] of parameters) first[name] ??= value
  return first
}

async function readBody(request: Request): Promise<Uint8Array> {
  if (!request.body) return new Uint8Array()
  const chunks: Uint8Array[] = []
  const reader = request.body.getReader()
  let size = 0
  for (;;) {
    const { value } = await reader.read().catch((cause: unknown) => {
      // A client that hangs up while it sends is no failure of ours.
      throw new Refusal('malformed', 'the body ended early', { cause })
    })
    if (!value) return Buffer.concat(chunks)
    size += value.length
    if (size > BODY_LIMIT) {
      await reader.cancel()
      throw new Refusal('too-large', 'the body is larger than 256 KiB')
    }
    chunks.push(value)
  }
}

function decodeJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(decodeText(bytes))
  } catch {
    throw new Refusal('malformed', 'the body is not JSON in UTF-8')
  }
}

function decodeText(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new Refusal('malformed', 'the body is not UTF-8')
  }
}

function parse<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  throw new Refusal('malformed', problemIn(parsed.error))
}

/** What the 400 says of a body or a query that does not parse: the first problem, with the field's name in front. */
export function problemIn(error: z.ZodError): string {
  const [issue] = error.issues
  const path = issue?.path ?? []
  const message = issue?.message || 'invalid'
  const field = path.join('.')
  const namesField = path.length === 0 || [String(path[0]), field].some((name) => message.startsWith(`${name} `))
  return namesField ? message : `${field}: ${message}`
}
