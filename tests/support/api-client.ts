import { openApi } from './api.ts'
import { requireDocumented } from './documented.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/**
 * The content of a request: a session, and a body that is sent as JSON unless it is text or bytes. `meanwhile` runs
 * when the service starts to read the body, before the first byte.
 */
export interface Sent {
  session?: string | undefined
  body?: unknown
  type?: string
  headers?: Record<string, string>
  meanwhile?: () => Promise<unknown>
}

/** The response to a request. `link` refers to the next page. */
export interface Answer<Body = Record<string, unknown>> {
  status: number
  body: Body
  headers: Headers
  link: string | undefined
}

/** Sends requests to a service and validates every response against the OpenAPI document. Paths are relative to `/api`. */
export interface ApiClient {
  ask<Body = Record<string, unknown>>(method: Method, path: string, sent?: Sent): Promise<Answer<Body>>
  /** the names in the document of all responses and headers received so far */
  seen: ReadonlySet<string>
}

interface ApiClientOptions {
  /** the address of the service, without `/api` */
  base?: string
  /** sends a request; by default to the route handlers in this process */
  fetch?: (request: Request) => Promise<Response>
}

/** A client of the service in this process, or of the service behind `fetch`. */
export async function openApiClient(options: ApiClientOptions = {}): Promise<ApiClient> {
  const { base = 'http://localhost:3000', fetch = await openApi() } = options
  const seen = new Set<string>()
  return {
    seen,
    ask: async (method, path, sent = {}) => {
      const response = await fetch(composeRequest(`${base}/api${path}`, method, sent))
      const { status, headers } = response
      const text = await response.text()
      const isJson = headers.get('content-type')?.startsWith('application/json')
      const body = isJson ? JSON.parse(text) : text
      for (const name of requireDocumented({ method, path, status, headers, body })) seen.add(name)
      return { status, headers, body, link: /^<(.*)>; rel="next"$/.exec(headers.get('link') ?? '')?.[1] }
    },
  }
}

function composeRequest(url: string, method: Method, sent: Sent): Request {
  const { session, body, type = 'application/json', headers = {}, meanwhile } = sent
  const isPlain = typeof body === 'string' || body instanceof Uint8Array
  const bytes = Buffer.from(isPlain ? body : (JSON.stringify(body) ?? ''))
  return new Request(url, {
    method,
    headers: {
      ...(session !== undefined && { Authorization: `Bearer ${session}` }),
      ...(body !== undefined && { 'Content-Type': type }),
      ...headers,
    },
    ...(body !== undefined && { body: meanwhile ? streamAfter(bytes, meanwhile) : bytes, duplex: 'half' }),
  })
}

function streamAfter(bytes: Uint8Array, meanwhile: () => Promise<unknown>): ReadableStream {
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
    await meanwhile()
    controller.enqueue(bytes)
    controller.close()
  }
  return new ReadableStream({ pull }, { highWaterMark: 0 })
}
