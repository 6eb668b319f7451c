import { type IncomingHttpHeaders, request } from 'node:http'

/** An answer as it came. */
export interface RawAnswer {
  status: number
  headers: IncomingHttpHeaders
  text: string
}

/** Sends what `fetch` would mend or forbid: any path, any Host. */
export function rawRequest(
  base: string,
  path: string,
  { method = 'GET', headers = {}, body }: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<RawAnswer> {
  const { hostname, port } = new URL(base)
  return new Promise((resolve, reject) => {
    const sent = request({ hostname, port, path, method, headers }, async (response) => {
      response.setEncoding('utf8')
      let text = ''
      for await (const chunk of response) text += chunk
      resolve({ status: response.statusCode ?? 0, headers: response.headers, text })
    })
    sent.on('error', reject)
    sent.end(body)
  })
}
