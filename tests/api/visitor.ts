import { openApi } from '../support/api.ts'
import { requireDocumented } from '../support/documented.ts'

/**
 * What goes with a request: a token, and a body that is sent as JSON unless it is text or bytes. `meanwhile` happens when the
 * service begins to read the body, and before any of it comes.
 */
export interface Sent {
  token?: string | undefined
  body?: unknown
  type?: string
  /** the address of the client, as the server names it */
  client?: string
  meanwhile?: () => Promise<unknown>
}

export interface Answer {
  status: number
  body: Record<string, unknown>
  headers: Headers
}

/** Asks a service, and holds each of its answers to the document. */
export interface Visitor {
  ask(method: string, path: string, sent?: Sent): Promise<Answer>
  /** every answer that there was, by its name in the document */
  seen: ReadonlySet<string>
}

/** A visitor of the service in this process. */
export async function openVisitor(): Promise<Visitor> {
  const fetchApi = await openApi()
  const seen = new Set<string>()
  return {
    seen,
    ask: async (method, path, { token, body, type = 'application/json', client, meanwhile } = {}) => {
      const isPlain = typeof body === 'string' || body instanceof Uint8Array
      const bytes = Buffer.from(isPlain ? body : (JSON.stringify(body) ?? ''))
      const request = new Request(`http://localhost:3000/api${path}`, {
        method,
        headers: {
          ...(token !== undefined && { Authorization: `Bearer ${token}` }),
          ...(body !== undefined && { 'Content-Type': type }),
          ...(client !== undefined && { 'X-Client-Address': client }),
        },
        ...(body !== undefined && { body: meanwhile ? whenRead(bytes, meanwhile) : bytes, duplex: 'half' }),
      })
      const response = await fetchApi(request)
      const { status, headers } = response
      const told = await response.text()
      const isJson = headers.get('content-type')?.startsWith('application/json')
      const answer = { status, headers, body: isJson ? JSON.parse(told) : told }
      seen.add(requireDocumented({ method, path, ...answer }))
      return answer
    },
  }
}

function whenRead(bytes: Uint8Array, meanwhile: () => Promise<unknown>): ReadableStream {
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
    await meanwhile()
    controller.enqueue(bytes)
    controller.close()
  }
  return new ReadableStream({ pull }, { highWaterMark: 0 })
}
