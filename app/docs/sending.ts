/** What goes into the path or the query of a request. */
export interface Parameter {
  name: string
  place: 'path' | 'query'
  example: string
  isRequired: boolean
}

/** What became of a request. Without a status nobody answered. */
export interface Outcome {
  status: number | undefined
  milliseconds: number
  headers: [name: string, value: string][]
  text: string
  /** of a sign-in that succeeded */
  session: string | undefined
}

interface Filled {
  baseUrl: string
  method: string
  path: string
  token: string
  parameters: readonly Parameter[]
  fields: FormData
  hasBody: boolean
}

const SHOWN_HEADERS = ['Link', 'Retry-After', 'WWW-Authenticate']

/** Sends what a form has been filled with. */
export async function sendRequest(filled: Filled): Promise<Outcome> {
  const { method, token, fields, hasBody } = filled
  const started = performance.now()
  const since = () => Math.round(performance.now() - started)
  try {
    const response = await fetch(urlOf(filled), {
      method,
      headers: {
        ...(token !== '' && { Authorization: `Bearer ${token}` }),
        ...(hasBody && { 'Content-Type': 'application/json' }),
      },
      ...(hasBody && { body: String(fields.get('body') ?? '') }),
    })
    const text = await response.text()
    const headers = SHOWN_HEADERS.flatMap((name): Outcome['headers'] => {
      const value = response.headers.get(name)
      return value === null ? [] : [[name, value]]
    })
    const { session, pretty } = read(text)
    return { status: response.status, milliseconds: since(), headers, text: pretty, session }
  } catch (error) {
    const text = `The request did not get through: ${error instanceof Error ? error.message : String(error)}`
    return { status: undefined, milliseconds: since(), headers: [], text, session: undefined }
  }
}

function urlOf({ baseUrl, path, parameters, fields }: Filled): string {
  const given = ({ name, place }: Parameter) => String(fields.get(`${place} ${name}`) ?? '')
  const place = parameters
    .filter((parameter) => parameter.place === 'path')
    .reduce((so, parameter) => so.replace(`{${parameter.name}}`, encodeURIComponent(given(parameter))), path)
  const query = new URLSearchParams(
    parameters
      .filter((parameter) => parameter.place === 'query' && given(parameter) !== '')
      .map((parameter) => [parameter.name, given(parameter)]),
  )
  return `${baseUrl.replace(/\/+$/, '')}${place}${query.size > 0 ? `?${query}` : ''}`
}

function read(text: string): { pretty: string; session: string | undefined } {
  try {
    const body: unknown = JSON.parse(text)
    const isSignIn = typeof body === 'object' && body !== null && 'session' in body && 'kind' in body
    const session = isSignIn && typeof body.session === 'string' ? body.session : undefined
    return { pretty: JSON.stringify(body, null, 2), session }
  } catch {
    return { pretty: text, session: undefined }
  }
}
