import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { Client } from 'pg'
import { freePort } from './port.ts'

/** A pooler in front of a database that hands each transaction to another session. */
export interface TransactionPooler {
  /** the database's address, through the pooler */
  url: string
  close(): Promise<void>
}

const PGBOUNCER = ['/usr/sbin/pgbouncer', '/usr/bin/pgbouncer'].find(existsSync)

export const poolerName = PGBOUNCER ? 'PgBouncer' : 'a proxy that changes sessions'

/** The sessions behind the pooler. */
const SESSIONS = 3

export const startTransactionPooler = (url: string): Promise<TransactionPooler> =>
  PGBOUNCER ? startPgBouncer(PGBOUNCER, url) : startChangingProxy(url)

async function startPgBouncer(program: string, url: string): Promise<TransactionPooler> {
  const { hostname, port, username, password, pathname } = new URL(url)
  const listenPort = await freePort()
  const folder = await mkdtemp(join(tmpdir(), 'pgbouncer-'))
  await chmod(folder, 0o755)
  const config = join(folder, 'pgbouncer.ini')
  await writeFile(
    config,
    [
      '[databases]',
      `* = host=${hostname} port=${port} user=${username} password=${password}`,
      '[pgbouncer]',
      'listen_addr = 127.0.0.1',
      `listen_port = ${listenPort}`,
      'unix_socket_dir =',
      'auth_type = any',
      'pool_mode = transaction',
      `default_pool_size = ${SESSIONS}`,
      // Each transaction gets the session that was idle longest.
      'server_round_robin = 1',
    ].join('\n'),
  )
  const user = process.getuid?.() === 0 ? ['-u', 'nobody'] : []
  const bouncer = spawn(program, ['-q', ...user, config], { stdio: 'ignore' })
  await untilListening(bouncer, listenPort)
  return {
    url: `postgres://${username}:${password}@127.0.0.1:${listenPort}${pathname}`,
    close: async () => {
      const exited = once(bouncer, 'exit')
      bouncer.kill('SIGKILL')
      await exited
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function untilListening(process: ChildProcess, port: number): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const client = new Client({ connectionString: `postgres://postgres:postgres@127.0.0.1:${port}/postgres` })
    try {
      await client.connect()
      return await client.end()
    } catch (error) {
      if (attempt === 100 || process.exitCode !== null) throw error
      await setTimeout(100)
    }
  }
}

/** What every server sends after the authentication: it is ready. */
const WELCOME = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0, 0x5a, 0, 0, 0, 5, 0x49])

/** The parts of pg's client that this file uses. */
interface PgConnection {
  connection: { stream: Socket }
}

/** Hands the messages of each transaction to another session than the one before. */
async function startChangingProxy(url: string): Promise<TransactionPooler> {
  const idle: Socket[] = []
  const waiting: ((session: Socket) => void)[] = []
  const release = (session: Socket) => {
    const next = waiting.shift()
    if (next) next(session)
    else idle.push(session)
  }
  const clients: Client[] = []
  for (let session = 0; session < SESSIONS; session += 1) {
    const client = new Client({ connectionString: url })
    // The test's database is dropped before the proxy ends.
    client.on('error', () => undefined)
    await client.connect()
    clients.push(client)
    const { stream } = (client as unknown as PgConnection).connection
    stream.removeAllListeners('data')
    idle.push(stream)
  }
  const take = (): Promise<Socket> | Socket =>
    idle.shift() ?? new Promise<Socket>((resolve) => void waiting.push(resolve))

  const server = createServer((client) => {
    client.on('error', () => undefined)
    let pending = Buffer.alloc(0)
    let hasStarted = false
    let session: Socket | undefined
    let working = Promise.resolve()
    const forward = async (messages: Buffer) => {
      session ??= await take()
      const current = session
      const answered = new Promise<void>((resolve) => {
        let received = Buffer.alloc(0)
        const read = (chunk: Buffer) => {
          client.write(chunk)
          received = Buffer.concat([received, chunk])
          const { length, last } = lastMessageOf(received)
          if (length !== received.length || last?.[0] !== 0x5a) return
          current.off('data', read)
          // Outside a transaction, the session is free for others.
          if (last[5] === 0x49) {
            session = undefined
            release(current)
          }
          resolve()
        }
        current.on('data', read)
      })
      current.write(messages)
      await answered
    }
    client.on('data', (chunk: Buffer) => {
      pending = Buffer.concat([pending, chunk])
      if (!hasStarted) {
        const length = pending.length >= 4 ? pending.readInt32BE() : Number.POSITIVE_INFINITY
        if (pending.length < length) return
        pending = pending.subarray(length)
        hasStarted = true
        client.write(WELCOME)
      }
      // A batch ends with a Query or a Sync, each of which the server answers with ReadyForQuery.
      for (let end = endOfBatch(pending); end > 0; end = endOfBatch(pending)) {
        const batch = pending.subarray(0, end)
        pending = pending.subarray(end)
        working = working.then(() => forward(batch))
      }
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  const { username, password, pathname } = new URL(url)
  return {
    url: `postgres://${username}:${password}@127.0.0.1:${port}${pathname}`,
    close: async () => {
      server.close()
      for (const client of clients) (client as unknown as PgConnection).connection.stream.destroy()
    },
  }
}

/** The bytes of whole messages, and the last of them. */
function lastMessageOf(bytes: Buffer): { length: number; last: Buffer | undefined } {
  let at = 0
  let last: Buffer | undefined
  while (at + 5 <= bytes.length && at + 1 + bytes.readInt32BE(at + 1) <= bytes.length) {
    const end = at + 1 + bytes.readInt32BE(at + 1)
    last = bytes.subarray(at, end)
    at = end
  }
  return { length: at, last }
}

/** The end of the first Query (Q) or Sync (S), or 0. */
function endOfBatch(bytes: Buffer): number {
  let at = 0
  while (at + 5 <= bytes.length) {
    const end = at + 1 + bytes.readInt32BE(at + 1)
    if (end > bytes.length) return 0
    if (bytes[at] === 0x51 || bytes[at] === 0x53) return end
    at = end
  }
  return 0
}
