import createClient, { type Client } from 'openapi-fetch'
import type { paths } from './payroll-api.d.ts'

export type { components, operations, paths } from './payroll-api.d.ts'

/** How a client reaches the service. */
export interface PayrollClientOptions {
  /** the address of the interface, such as `https://payroll.example/api` */
  baseUrl: string
  /** the session of a sign-in, or where to find it whenever something is sent */
  session?: string | (() => string | undefined)
  fetch?: (request: Request) => Promise<Response>
}

export type PayrollClient = Client<paths>

/** A refusal of the service: `code` is for programs, `message` for people. */
export class PayrollError extends Error {
  readonly status: number
  readonly code: string
  /** every bad field, where there are several */
  readonly fields: readonly { path: string; message: string }[]
  /** the other fields of the answer, such as `hash` or `jobId` */
  readonly details: Readonly<Record<string, unknown>>
  /** seconds after which another try makes sense, where the service says so */
  readonly retryAfter: number | undefined
  /** the id by which the operator finds the request in the log */
  readonly requestId: string | undefined

  constructor(response: Response, body: Record<string, unknown>) {
    const { error, message, code, fields, ...details } = body
    super(String(message ?? error ?? response.statusText))
    this.name = 'PayrollError'
    this.status = response.status
    this.code = String(code ?? 'unknown')
    this.fields = Array.isArray(fields) ? fields : []
    this.details = details
    const retryAfter = response.headers.get('retry-after')
    this.retryAfter = retryAfter === null ? undefined : Number(retryAfter)
    this.requestId = response.headers.get('x-request-id') ?? undefined
  }
}

/** A client of the service: `client.GET('/batches/{id}', …)`. Every refusal is thrown as a PayrollError. */
export function createPayrollClient({ baseUrl, session, fetch }: PayrollClientOptions): PayrollClient {
  const client = createClient<paths>({ baseUrl: baseUrl.replace(/\/+$/, ''), ...(fetch && { fetch }) })
  client.use({
    onRequest: ({ request }) => {
      const token = typeof session === 'function' ? session() : session
      if (token !== undefined) request.headers.set('Authorization', `Bearer ${token}`)
    },
    onResponse: async ({ response }) => {
      if (!response.ok) throw new PayrollError(response, await bodyOf(response))
    },
  })
  return client
}

/** The body of an answer: `const me = await take(client.GET('/me'))`. @throws PayrollError */
export async function take<Answer extends { data?: unknown }>(
  answering: Promise<Answer>,
): Promise<NonNullable<Answer['data']>> {
  const { data } = await answering
  if (data === undefined || data === null) throw new Error('the service has answered without a body')
  return data
}

/**
 * The pages of a list, one after the other.
 * @param ask `(query) => client.GET('/contractors', { params: { query } })`
 */
export async function* pages<Answer extends { data?: unknown; response: Response }>(
  ask: (query: { limit: number; cursor?: string }) => Promise<Answer>,
  limit = 100,
): AsyncGenerator<NonNullable<Answer['data']>, void, undefined> {
  for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
    const answer = await ask({ limit, ...(cursor !== undefined && { cursor }) })
    if (answer.data) yield answer.data as NonNullable<Answer['data']>
    const [, next] = /<\?([^>]*)>; rel="next"/.exec(answer.response.headers.get('link') ?? '') ?? []
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
