import { type LocalServer, readBody, serveLocally } from './local-server.ts'

/** Serves a `fetch` over HTTP on the loopback address. */
export function listen(port: number, answer: (request: Request) => Promise<Response>): Promise<LocalServer> {
  return serveLocally(async (incoming, outgoing) => {
    const url = new URL(incoming.url ?? '/', `http://localhost:${port}`)
    const headers = new Headers(Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]))
    const method = incoming.method ?? 'GET'
    const body = await readBody(incoming)
    const response = await answer(
      new Request(url, { method, headers, ...(body.length > 0 && { body: Uint8Array.from(body) }) }),
    )
    outgoing.writeHead(response.status, Object.fromEntries(response.headers)).end(await response.text())
  }, port)
}
