import { openApi } from '../support/api.ts'
import { requireDocumented } from '../support/documented.ts'

/** What goes with a request: a token, and a body that is sent as JSON unless it is text. */
export interface Sent {
  token?: string | undefined
  body?: unknown
  type?: string
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
    ask: async (method, path, { token, body, type = 'application/json' } = {}) => {
      const request = new Request(`http://localhost:3000/api${path}`, {
        method,
        headers: {
          ...(token !== undefined && { Authorization: `Bearer ${token}` }),
          ...(body !== undefined && { 'Content-Type': type }),
        },
        ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      })
      const response = await fetchApi(request)
      const { status, headers } = response
      const text = await response.text()
      const isJson = headers.get('content-type')?.startsWith('application/json')
      const answer = { status, headers, body: isJson ? JSON.parse(text) : text }
      seen.add(requireDocumented({ method, path, ...answer }))
      return answer
    },
  }
}
