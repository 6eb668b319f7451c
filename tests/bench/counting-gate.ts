import { connect, createServer, type Socket } from 'node:net'

/** A proxy to PostgreSQL that counts the statements sent through it. */
export interface CountingGate {
  url: string
  /** statements since the last reset, including those that begin and end a transaction */
  count(): number
  reset(): void
  close(): Promise<void>
}

/** Message types that run a statement: a simple query, and the execution of a prepared one. */
const STATEMENTS = new Set(['Q'.charCodeAt(0), 'E'.charCodeAt(0)])

export async function startCountingGate(databaseUrl: string): Promise<CountingGate> {
  const target = new URL(databaseUrl)
  let statements = 0
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => undefined)
      socket.once('close', () => {
        client.destroy()
        upstream.destroy()
        sockets.delete(socket)
      })
    }
    const read = messageReader((type) => {
      if (STATEMENTS.has(type)) statements += 1
    })
    client.on('data', read)
    client.pipe(upstream).pipe(client)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (typeof address !== 'object' || !address) throw new Error('no address')
  const url = new URL(databaseUrl)
  url.port = String(address.port)
  return {
    url: url.href,
    count: () => statements,
    reset: () => {
      statements = 0
    },
    close: () => {
      for (const socket of sockets) socket.destroy()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

/** Returns the type of each client message: a byte, then a length that includes itself. The first message has no type. */
function messageReader(tell: (type: number) => void): (part: Buffer) => void {
  let rest = Buffer.alloc(0)
  let isFirst = true
  return (part) => {
    rest = Buffer.concat([rest, part])
    for (;;) {
      const header = isFirst ? 0 : 1
      if (rest.length < header + 4) return
      const length = header + rest.readUInt32BE(header)
      if (rest.length < length) return
      if (!isFirst) tell(rest[0] ?? 0)
      isFirst = false
      rest = rest.subarray(length)
    }
  }
}
