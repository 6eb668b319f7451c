import type { Server } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { ignoreUpgrades } from './front.ts'

/**
 * Lets a server that listens on 127.0.0.1 also accept connections to [::1], since `localhost` may mean either. If there
 * is no IPv6, or another program uses its port, only IPv4 works.
 */
export function acceptIpv6Loopback(server: Server): void {
  const { port } = server.address() as AddressInfo
  ignoreUpgrades(server)
  const second = createServer((socket) => server.emit('connection', socket))
  second.on('error', () => undefined)
  second.listen(port, '::1')
  const close = server.close.bind(server)
  server.close = (callback) => {
    const closed = new Promise((resolve) => second.close(resolve))
    return close(async (error) => {
      await closed
      callback?.(error)
    })
  }
}
