import { fork } from 'node:child_process'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { migrateStore } from '#lib/db/connection.ts'
import type { Figure } from './directory.ts'

const PROCESSES = 8
const CLIENTS = 40
const ROUND_TRIP_MS = 1
const SECONDS = 20

/**
 * How many transfers per second eight processes record and settle. All of them change the rows of the budget and the
 * float.
 */
export async function measureWriters(databaseUrl: string): Promise<Figure[]> {
  await migrateStore({ url: databaseUrl })
  const far = await startDelay(databaseUrl)
  const writers = Array.from({ length: PROCESSES }, () =>
    fork(new URL('writer-process.ts', import.meta.url), [far.url, `${CLIENTS / PROCESSES}`, `${SECONDS}`]),
  )
  await Promise.all(writers.map((writer) => once(writer, 'message')))
  for (const writer of writers) writer.send('begin')
  const counts = await Promise.all(writers.map(async (writer) => Number((await once(writer, 'message'))[0])))
  const exits = writers.map((writer) => once(writer, 'exit'))
  for (const writer of writers) writer.disconnect()
  await Promise.all(exits)
  far.close()
  const perSecond = counts.reduce((sum, count) => sum + count, 0) / SECONDS
  return [
    {
      name: `${CLIENTS} writers in ${PROCESSES} processes`,
      found: `${perSecond.toFixed(0)} transfers a second, at round trips of ${ROUND_TRIP_MS} ms`,
      goal: 'at least 100 a second',
    },
  ]
}

/** A proxy in front of PostgreSQL that delays what clients send. */
async function startDelay(databaseUrl: string): Promise<{ url: string; close(): void }> {
  const url = new URL(databaseUrl)
  const { hostname, port } = url
  const server = createServer({ noDelay: true }, (client) => {
    const upstream = connect({ port: Number(port), host: hostname, noDelay: true })
    client.on('data', (data) => setTimeout(() => upstream.write(data), ROUND_TRIP_MS))
    upstream.on('data', (data) => client.write(data))
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      one.on('error', () => undefined)
      one.on('close', () => other.destroy())
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (typeof address !== 'object' || !address) throw new Error('no address')
  url.port = String(address.port)
  return { url: url.href, close: () => server.close() }
}
