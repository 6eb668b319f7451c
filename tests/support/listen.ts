import { createServer } from 'node:http'

type Handler = (request: Request, context: unknown) => Promise<Response>

/** Serves route handlers over HTTP on the loopback address, by path. */
export async function listen(
  port: number,
  routes: Record<string, Partial<Record<string, Handler>>>,
): Promise<{ close(): Promise<void> }> {
  const server = createServer(async (incoming, outgoing) => {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(Buffer.from(chunk))
    const url = new URL(incoming.url ?? '/', `http://localhost:${port}`)
    const headers = new Headers(Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]))
    const method = incoming.method ?? 'GET'
    const body = chunks.length > 0 ? { body: Buffer.concat(chunks) } : {}
    const handler = routes[url.pathname]?.[method]
    const response = handler
      ? await handler(new Request(url, { method, headers, ...body }), undefined)
      : new Response(null, { status: 404 })
    outgoing.writeHead(response.status, Object.fromEntries(response.headers)).end(await response.text())
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return {
    close: () => {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}
