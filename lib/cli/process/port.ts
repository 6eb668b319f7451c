import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * Rejects if another program listens on `port`. Other problems of the address are left to the server.
 * @param host the address to listen on; undefined for all
 */
export async function requireFreePort(port: number, host: string | undefined): Promise<void> {
  const server = createServer()
  try {
    await once(server.listen(port, host), 'listening')
    server.close()
  } catch (cause) {
    if (!(cause instanceof Error && 'code' in cause && cause.code === 'EADDRINUSE')) return
    const message = `Port ${port} is in use. Stop the program that uses it (another npm start or npm run dev?), or set PORT.`
    throw new Error(message, { cause })
  }
}
