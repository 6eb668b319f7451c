import { connect, createServer, type Server, type Socket } from 'node:net'
import { joinSockets } from './joined-sockets.ts'
import { freePort } from './port.ts'

/** A proxy to a server, by its URL, that is closed at first: its port refuses connections. */
export interface Gate {
  url: string
  open(): Promise<void>
  /** Closes every connection and refuses new ones. */
  shut(): Promise<void>
}

export async function makeGate(target: string): Promise<Gate> {
  const url = new URL(target)
  const { hostname, port } = url
  url.port = String(await freePort())
  const sockets = new Set<Socket>()
  let server: Server | undefined
  return {
    url: url.href,
    open: async () => {
      const opening = createServer((client) => {
        const upstream = connect(Number(port), hostname)
        client.pipe(upstream).pipe(client)
        joinSockets(sockets, client, upstream)
      })
      server = opening
      await new Promise<void>((resolve) => opening.listen(Number(url.port), '127.0.0.1', resolve))
    },
    shut: async () => {
      const shutting = server
      server = undefined
      for (const socket of sockets) socket.destroy()
      await new Promise<void>((resolve) => (shutting ? shutting.close(() => resolve()) : resolve()))
    },
  }
}
