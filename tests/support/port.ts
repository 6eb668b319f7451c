import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * A loopback port that was free a moment ago, below the ports that systems choose for outgoing connections: such a connection
 * could take it before it is listened on.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 32_000)
    const server = createServer().listen(port, '127.0.0.1')
    const isFree = await once(server, 'listening').then(
      () => true,
      (error: NodeJS.ErrnoException) => {
        if (error.code !== 'EADDRINUSE') throw error
        return false
      },
    )
    if (!isFree) continue
    await once(server.close(), 'close')
    return port
  }
}
