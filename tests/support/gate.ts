import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { joinSockets } from './joined-sockets.ts'
import { freePort } from './port.ts'

/** A proxy to a server, by its URL, that is closed at first: its port refuses connections. */
export interface Gate {
  url: string
  /** Cuts the next connection that sends this text, once the server has responded to the COMMIT of its SQL transaction. */
  loseCommit(of: string): void
  /** how often that has happened */
  commitsLost(): number
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
  let ofLost: string | undefined
  let lost = 0

  function watch(client: Socket, upstream: Socket): void {
    let isIt = false
    let isCommitted = false
    client.on('data', (part) => {
      const text = part.toString('latin1')
      if (ofLost !== undefined && text.includes(ofLost)) {
        isIt = true
        ofLost = undefined
      }
      isCommitted ||= isIt && /commit\b/i.test(text)
      if (isCommitted) upstream.unpipe(client).resume()
    })
    upstream.on('data', () => {
      if (!isCommitted) return
      lost += 1
      client.destroy()
    })
  }

  return {
    url: url.href,
    loseCommit: (of) => {
      ofLost = of
    },
    commitsLost: () => lost,
    open: async () => {
      const opening = createServer((client) => {
        const upstream = connect(Number(port), hostname)
        client.pipe(upstream).pipe(client)
        joinSockets(sockets, client, upstream)
        watch(client, upstream)
      })
      server = opening
      await once(opening.listen(Number(url.port), '127.0.0.1'), 'listening')
    },
    shut: async () => {
      const shutting = server
      server = undefined
      for (const socket of sockets) socket.destroy()
      await new Promise<void>((resolve) => (shutting ? shutting.close(() => resolve()) : resolve()))
    },
  }
}
