import { connect, type Socket } from 'node:net'
import { WebSocketServer } from 'ws'

/** A WebSocket proxy to PostgreSQL, like Neon's. */
export interface WebSocketProxy {
  /** host:port */
  address: string
  /** Closes every connection and refuses new ones. */
  fall(): Promise<void>
  wake(): Promise<void>
  close(): Promise<void>
}

/** Connects every WebSocket to the host of `databaseUrl`, even if it requests another address. */
export async function startWebSocketProxy(databaseUrl: string): Promise<WebSocketProxy> {
  const { hostname, port } = new URL(databaseUrl)
  let listening = await listen(0, () => connect(Number(port), hostname))
  const { port: own } = listening
  return {
    address: `127.0.0.1:${own}`,
    fall: () => listening.close(),
    wake: async () => {
      listening = await listen(own, () => connect(Number(port), hostname))
    },
    close: () => listening.close(),
  }
}

async function listen(port: number, open: () => Socket): Promise<{ port: number; close(): Promise<void> }> {
  const server = new WebSocketServer({ port, host: '127.0.0.1' })
  server.on('connection', (socket) => {
    const upstream = open()
    socket.on('message', (data: Buffer) => void upstream.write(data))
    upstream.on('data', (data) => socket.send(data))
    socket.on('error', () => undefined)
    upstream.on('error', () => undefined)
    socket.on('close', () => upstream.destroy())
    upstream.on('close', () => socket.terminate())
  })
  await new Promise<void>((resolve) => server.once('listening', resolve))
  const address = server.address()
  if (typeof address !== 'object' || !address) throw new Error('no address')
  return {
    port: address.port,
    close: () => {
      for (const client of server.clients) client.terminate()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}
