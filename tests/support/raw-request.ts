import { type IncomingHttpHeaders, request } from 'node:http'
import { connect } from 'node:net'

/** An unprocessed response. */
interface RawAnswer {
  status: number
  headers: IncomingHttpHeaders
  text: string
}

/** Sends requests that `fetch` would correct or forbid: any path, any Host. */
export function rawRequest(
  base: string,
  path: string,
  {
    method = 'GET',
    headers = {},
    body,
    signal,
  }: { method?: string; headers?: Record<string, string>; body?: string; signal?: AbortSignal } = {},
): Promise<RawAnswer> {
  const { hostname, port } = new URL(base)
  return new Promise((resolve, reject) => {
    // A connection that was kept alive may be closed by the server in the moment in which it is used again.
    const options = { hostname, port, path, method, headers, agent: false, ...(signal && { signal }) }
    const sent = request(options, async (response) => {
      try {
        response.setEncoding('utf8')
        let text = ''
        for await (const chunk of response) text += chunk
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text })
      } catch (error) {
        reject(error)
      }
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

/** The bytes after the headers of a response: Node's client would hide an illegal body of a HEAD. */
export function wiredBody(
  base: string,
  path: string,
  { method, headers = {} }: { method: string; headers?: Record<string, string> },
): Promise<string> {
  const { hostname, port, host } = new URL(base)
  const lines = Object.entries({ Host: host, Connection: 'close', ...headers }).map((line) => line.join(': '))
  return new Promise((resolve, reject) => {
    let text = ''
    const socket = connect(Number(port), hostname)
    socket.setEncoding('utf8')
    socket.on('data', (part) => {
      text += part
    })
    socket.on('error', reject)
    socket.on('end', () => {
      const end = text.indexOf('\r\n\r\n')
      if (end < 0) reject(new Error('no answer'))
      else resolve(text.slice(end + 4))
    })
    socket.write(`${method} ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`)
  })
}

/** Writes `parts` to one connection; resolves to everything received until the other side closes it. */
export function wired(base: string, parts: readonly string[]): Promise<string> {
  const { hostname, port } = new URL(base)
  return new Promise((resolve, reject) => {
    let text = ''
    const socket = connect(Number(port), hostname)
    socket.setEncoding('utf8')
    socket.on('data', (part) => {
      text += part
    })
    socket.on('error', reject)
    socket.on('close', () => resolve(text))
    for (const part of parts) socket.write(part)
  })
}
