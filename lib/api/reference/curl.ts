/** A request as the reference composes it. */
interface ComposedRequest {
  method: string
  url: string
  /** the bearer token; empty for none */
  token: string
  /** by name; empty ones are left out */
  headers?: Readonly<Record<string, string>>
  body: string | undefined
}

/** The request as a command for a POSIX shell. */
export function curlCommand({ method, url, token, headers = {}, body }: ComposedRequest): string {
  return [
    `curl${method === 'GET' ? '' : ` -X ${method}`} ${quote(url)}`,
    ...(token === '' ? [] : [`-H ${quote(`Authorization: Bearer ${token}`)}`]),
    ...Object.entries(headers).flatMap(([name, value]) => (value === '' ? [] : `-H ${quote(`${name}: ${value}`)}`)),
    ...(body === undefined ? [] : [`-H ${quote('Content-Type: application/json')}`, `-d ${quote(body)}`]),
  ].join(' \\\n  ')
}

/** A single-quoted word: only a single quote needs escaping. */
const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

/**
 * Fills a path's parameters and appends a query's.
 * @param path such as `/batches/{id}`
 * @param values by name; empty ones of the query are left out
 */
export function requestPath(
  path: string,
  parameters: Readonly<Record<string, string>>,
  query: Readonly<Record<string, string>>,
): string {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(parameters[name] ?? ''))
  const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== ''))
  return search.size === 0 ? filled : `${filled}?${search}`
}
