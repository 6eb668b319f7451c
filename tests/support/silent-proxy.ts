import { connect, createServer, type Socket } from 'node:net'
import { joinSockets } from './joined-sockets.ts'

/** A proxy to PostgreSQL that can fall silent, dropping everything that the client sends. */
export interface SilentProxy {
  url: string
  fall(): void
  /** Drops the client's bytes but still delivers the server's. Resolves once something was dropped. */
  deafen(): Promise<void>
  /** Forwards the COMMIT of the next transaction with this statement, and drops all responses from then on. */
  muteCommitOf(statement: string): void
  wake(): void
  /** Closes every connection. */
  cut(): void
  close(): Promise<void>
}

export async function startSilentProxy(databaseUrl: string): Promise<SilentProxy> {
  const url = new URL(databaseUrl)
  const { hostname, port } = url
  let silent = false
  let deaf: (() => void) | undefined
  let muting: string | undefined
  let isMuted = false
  const cut = () => {
    for (const socket of sockets) socket.destroy()
  }
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname)
    let isMuting = false
    client.on('data', (data) => {
      deaf?.()
      const text = data.toString('latin1')
      if (muting !== undefined && text.includes(muting)) isMuting = true
      if (isMuting && /commit/i.test(text)) isMuted = true
      if (!silent && !deaf) upstream.write(data)
    })
    upstream.on('data', (data) => void (silent || isMuted || client.write(data)))
    joinSockets(sockets, client, upstream)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (typeof address !== 'object' || !address) throw new Error('no address')
  url.port = String(address.port)
  return {
    url: url.href,
    fall: () => {
      silent = true
    },
    deafen: () =>
      new Promise<void>((resolve) => {
        deaf = resolve
      }),
    muteCommitOf: (statement) => {
      muting = statement
    },
    wake: () => {
      silent = false
      muting = undefined
      isMuted = false
      deaf = undefined
    },
    cut,
    close: () => {
      cut()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}
