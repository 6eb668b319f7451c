import createClient, { type Client } from 'openapi-fetch'
import { patiently } from './patience.ts'
import type { paths } from './payroll-api.d.ts'
import { PayrollError } from './payroll-error.ts'

export type { components, operations, paths } from './payroll-api.d.ts'
export { PayrollError, type PayrollErrorCode } from './payroll-error.ts'
export { type PayrollEvent, type WatchOptions, watch } from './watch.ts'

export interface PayrollClientOptions {
  /** the base address of the API, such as `https://payroll.example/api` */
  baseUrl: string
  /** the session of a sign-in, or a function that returns it for each request */
  session?: string | (() => string | undefined)
  /** Signs in again when the session has expired, and resolves once `session` returns the new one. The request is then repeated. */
  renew?: () => Promise<unknown>
  fetch?: (request: Request) => Promise<Response>
}

export type PayrollClient = Client<paths> & {
  /** the base address of the API, as given */
  readonly baseUrl: string
}

/** How often a request is sent while the network or the service fails: within two seconds, or after each Retry-After. */
const ATTEMPTS = 4

/** The paths whose POST takes an Idempotency-Key. */
type Idempotent = {
  [Path in keyof paths]: paths[Path] extends { post: { parameters: { header?: infer Header } } }
    ? [NonNullable<Header>] extends [never]
      ? never
      : Path
    : never
}[keyof paths]

const IDEMPOTENT: Readonly<Record<string, true>> = {
  '/contractors': true,
  '/contractors/bulk': true,
  '/contractors/{id}/invite': true,
  '/batches': true,
  '/batches/{id}/instructions': true,
  '/webhooks': true,
  '/webhooks/{id}/secret': true,
} satisfies Record<Idempotent, true>

const KEY = 'Idempotency-Key'

/** 32 digits. Pages that are not a secure context have no `randomUUID`. */
const newKey = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')

/**
 * A client of the API: `client.GET('/batches/{id}', …)`. It throws a PayrollError for every error response, for a response
 * that is not the service's, and if there is none. A GET is retried after a transient error, and so is a POST that takes an
 * Idempotency-Key: it is sent with a new one unless you give it yours, and creates nothing twice.
 */
export function createPayrollClient(options: PayrollClientOptions): PayrollClient {
  const { baseUrl, session, renew } = options
  const base = baseUrl.replace(/\/+$/, '')
  const call = options.fetch ?? ((request: Request) => globalThis.fetch(request))
  let renewal: Promise<unknown> | undefined
  const tokenNow = () => (typeof session === 'function' ? session() : session)
  const send = (request: Request, token = tokenNow()) => {
    if (token !== undefined) request.headers.set('Authorization', `Bearer ${token}`)
    return received(call(request)).catch((cause: unknown) => {
      // A fetch throws a TypeError if it gets no response, and the reason of its signal if it is aborted.
      if (!(cause instanceof TypeError)) throw cause
      throw new PayrollError(Response.error(), { code: 'network', error: `${base} does not respond` }, { cause })
    })
  }
  const sendInSession = async (request: Request) => {
    // Signing in needs no session.
    if (!renew || request.url.includes(`${base}/auth/`)) return await send(request)
    const again = request.clone()
    const token = tokenNow()
    const response = await send(request, token)
    if (response.status !== 401) return response
    // Requests whose session expired together share one sign-in.
    if (token === tokenNow()) {
      renewal ??= renew().finally(() => {
        renewal = undefined
      })
    }
    await renewal
    return await send(again)
  }
  const answer = async (request: Request) => await requireSuccess(await sendInSession(request), base)
  const client = createClient<paths>({
    baseUrl: base,
    fetch: (request) => {
      if (request.method !== 'GET' && !request.headers.has(KEY)) return answer(request)
      return patiently(() => answer(request.clone()), { attempts: ATTEMPTS, signal: request.signal })
    },
  })
  client.use({
    onRequest: ({ request, schemaPath }) => {
      const isNew = request.method === 'POST' && IDEMPOTENT[schemaPath] && !request.headers.has(KEY)
      if (isNew) request.headers.set(KEY, newKey())
    },
  })
  return Object.assign(client, { baseUrl })
}

/** A response with its whole body: a connection may also end in the middle of one. */
async function received(pending: Promise<Response>): Promise<Response> {
  const response = await pending
  if (response.body === null) return response
  const { status, statusText, headers } = response
  return new Response(await response.arrayBuffer(), { status, statusText, headers })
}

/** @throws PayrollError */
async function requireSuccess(response: Response, base: string): Promise<Response> {
  const isPage = response.headers.get('content-type')?.startsWith('text/html') ?? false
  if (isPage) {
    const error = `${base} answered ${response.status} with a page: is it the base address of the API, such as https://payroll.example/api?`
    throw new PayrollError(response, { error })
  }
  if (!response.ok) throw new PayrollError(response, await bodyOf(response))
  return response
}

/** The body of a response: `const me = await take(client.GET('/me'))`. @throws PayrollError */
export async function take<Result extends { data?: unknown }>(
  request: Promise<Result>,
): Promise<NonNullable<Result['data']>> {
  const { data } = await request
  if (data === undefined || data === null) throw new Error('the response has no body')
  return data
}

/**
 * The pages of a list, in order.
 * @param request `(query) => client.GET('/contractors', { params: { query } })`
 */
export async function* pages<Result extends { data?: unknown; response: Response }>(
  request: (query: { limit: number; cursor?: string }) => Promise<Result>,
  limit = 100,
): AsyncGenerator<NonNullable<Result['data']>, void, undefined> {
  for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
    const { data, response } = await request({ limit, ...(cursor !== undefined && { cursor }) })
    if (data) yield data as NonNullable<Result['data']>
    const [, next] = /<\?([^>]*)>; rel="next"/.exec(response.headers.get('link') ?? '') ?? []
    cursor = next === undefined ? undefined : (new URLSearchParams(next).get('cursor') ?? undefined)
  }
}

async function bodyOf(response: Response): Promise<Record<string, unknown>> {
  const text = await response.text()
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch {
    return { error: text }
  }
}
