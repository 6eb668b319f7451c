import createClient, { type Client } from 'openapi-fetch'
import type { operations, paths } from './payroll-api.d.ts'

export type { components, operations, paths } from './payroll-api.d.ts'

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

/**
 * The codes of the service, in docs/error-codes.md, and two of the client: `network` without a response, and `unknown` for a response
 * that is not the service's.
 */
export type PayrollErrorCode = CodeIn<BodyOf<ResponsesOf<operations[keyof operations]>>> | 'network' | 'unknown'

type ResponsesOf<Operation> = Operation extends { responses: infer Responses } ? Responses[keyof Responses] : never
type BodyOf<Given> = Given extends { content: { 'application/json': infer Body } } ? Body : never
type CodeIn<Body> = Body extends { code?: infer Code } ? (string extends Code ? never : Extract<Code, string>) : never

/** An error response, or none: `code` is for programs, `message` for people. */
export class PayrollError extends Error {
  /** the HTTP status; 0 without a response */
  readonly status: number
  readonly code: PayrollErrorCode
  /** every bad field, if there are several */
  readonly fields: readonly { path: string; message: string }[]
  /** the other fields of the body, such as `hash` or `jobId` */
  readonly details: Readonly<Record<string, unknown>>
  /** seconds to wait before a retry, from the Retry-After header */
  readonly retryAfter: number | undefined
  /** the id of the request in the operator's log */
  readonly requestId: string | undefined

  constructor(response: Response, body: Record<string, unknown>, options?: ErrorOptions) {
    const { error, message, code, fields, ...details } = body
    super(String(message ?? error ?? response.statusText), options)
    this.name = 'PayrollError'
    this.status = response.status
    this.code = String(code ?? 'unknown') as PayrollErrorCode
    this.fields = Array.isArray(fields) ? fields : []
    this.details = details
    const retryAfter = response.headers.get('retry-after')
    // A proxy may name a date.
    const seconds = Number(retryAfter ?? Number.NaN)
    this.retryAfter = Number.isFinite(seconds) ? seconds : undefined
    this.requestId = response.headers.get('x-request-id') ?? undefined
  }
}

/**
 * A client of the API: `client.GET('/batches/{id}', …)`. It throws a PayrollError for every error response, for a response
 * that is not the service's, and if there is none.
 */
export function createPayrollClient(options: PayrollClientOptions): PayrollClient {
  const { baseUrl, session, renew } = options
  const call = options.fetch ?? ((request: Request) => globalThis.fetch(request))
  let renewal: Promise<unknown> | undefined
  const tokenNow = () => (typeof session === 'function' ? session() : session)
  const send = (request: Request, token = tokenNow()) => {
    if (token !== undefined) request.headers.set('Authorization', `Bearer ${token}`)
    return call(request).catch((cause: unknown) => {
      // A fetch throws a TypeError if it gets no response, and the reason of its signal if it is aborted.
      if (!(cause instanceof TypeError)) throw cause
      throw new PayrollError(Response.error(), { code: 'network', error: `${base} does not respond` }, { cause })
    })
  }
  const base = baseUrl.replace(/\/+$/, '')
  const client = createClient<paths>({
    baseUrl: base,
    fetch: async (request) => {
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
    },
  })
  client.use({
    onResponse: async ({ response }) => {
      const isPage = response.headers.get('content-type')?.startsWith('text/html') ?? false
      if (isPage) {
        const error = `${base} answered ${response.status} with a page: is it the base address of the API, such as https://payroll.example/api?`
        throw new PayrollError(response, { error })
      }
      if (!response.ok) throw new PayrollError(response, await bodyOf(response))
    },
  })
  return Object.assign(client, { baseUrl })
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
