/** How a client reaches the service. */
export interface PayrollClientOptions {
  /** where the interface is, such as `https://payroll.example/api` */
  baseUrl: string
  /** the session of a sign-in, or where to find it whenever something is sent */
  session?: string | (() => string | undefined)
  fetch?: (request: Request) => Promise<Response>
}

/** What the service answered instead: its status, and its words. */
export class PayrollError extends Error {
  readonly status: number
  /** seconds after which another try makes sense, where the service says so */
  readonly retryAfter: number | undefined

  constructor(status: number, message: string, retryAfter: number | undefined) {
    super(message)
    this.name = 'PayrollError'
    this.status = status
    this.retryAfter = retryAfter
  }
}

interface Call {
  method: string
  path: string
  query?: object
  body?: unknown
}

/** What sends the calls of a client. */
export function openTransport(options: PayrollClientOptions) {
  const base = options.baseUrl.replace(/\/+$/, '')
  const send = options.fetch ?? ((request: Request) => fetch(request))

  async function ask(method: string, url: URL, body?: unknown): Promise<Response> {
    const session = typeof options.session === 'function' ? options.session() : options.session
    const headers = new Headers(session === undefined ? {} : { Authorization: `Bearer ${session}` })
    if (body !== undefined) headers.set('Content-Type', 'application/json')
    const response = await send(
      new Request(url, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) }),
    )
    if (!response.ok) throw await errorOf(response)
    return response
  }

  function urlOf({ path, query = {} }: Call): URL {
    const url = new URL(`${base}${path}`)
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) url.searchParams.set(name, String(value))
    return url
  }

  return {
    /** @throws PayrollError */
    call: async <Answer>(call: Call): Promise<Answer> => {
      const response = await ask(call.method, urlOf(call), call.body)
      const isJson = response.headers.get('content-type')?.startsWith('application/json')
      return (isJson ? await response.json() : await response.text()) as Answer
    },
    /** The pages of a list, one after the other. @throws PayrollError */
    pages: async function* <Answer>(call: Call): AsyncGenerator<Answer, void, undefined> {
      for (let url: URL | undefined = urlOf(call); url; ) {
        const response = await ask(call.method, url)
        yield (await response.json()) as Answer
        const [, next] = /<([^>]*)>; rel="next"/.exec(response.headers.get('link') ?? '') ?? []
        url = next === undefined ? undefined : new URL(next, url)
      }
    },
  }
}

async function errorOf(response: Response): Promise<PayrollError> {
  const text = await response.text()
  const retryAfter = Number(response.headers.get('retry-after') ?? undefined)
  return new PayrollError(response.status, messageOf(text), Number.isNaN(retryAfter) ? undefined : retryAfter)
}

function messageOf(text: string): string {
  try {
    const { error, message } = JSON.parse(text) as { error?: string; message?: string }
    return message ?? error ?? text
  } catch {
    return text
  }
}
