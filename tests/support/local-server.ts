import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'

/** An HTTP server on the loopback address. */
export interface LocalServer {
  url: string
  port: number
  server: Server
  /** Also closes open connections. */
  close(): Promise<void>
}

/** @param port 0 chooses a free one */
export async function serveLocally(handle: RequestListener, port = 0): Promise<LocalServer> {
  const server = createServer(handle)
  // Opening a PGlite blocks the process for seconds: an idle connection must survive that.
  server.keepAliveTimeout = 60_000
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
  const address = server.address()
  if (typeof address !== 'object' || !address) throw new Error('not listening')
  return {
    url: `http://127.0.0.1:${address.port}`,
    port: address.port,
    server,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** The whole body of a request. */
export async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks)
}
