import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { composeOperator, mintOperatorSession } from '#lib/auth/operator.ts'
import { mintSession } from '#lib/auth/session.ts'
import { startServing } from '#lib/cli/process/serve.ts'
import { openStore } from '#lib/db/connection.ts'
import { type FilledRecords, fillDatabase } from '../support/filled-database.ts'
import { measureChores, type Surroundings, startSurroundings } from './scale-chores.ts'
import { type Caller, REQUESTS } from './scale-requests.ts'

const PAYOUTS = 3_000_000
/** A hundredth of the payouts. Some lists are then shorter than one page or file part: the table has both sizes. */
const smallerThan = (payouts: number) => Math.max(10_000, Math.ceil(payouts / 100))
const ROUNDS = 7
const WARMING_UP = 2
const PORT = 3930
const SECRET = 'a secret for one run of the benchmark, long enough'
const PASSWORD = 'the password of the benchmark'
const TOKEN = 'the token of the benchmark'

/** A filled database, and the service on it. */
interface Filled {
  url: string
  base: string
  records: FilledRecords & { token: string }
  /** the headers of the employers' sessions, of the operator, and of the tokens */
  headers: Record<Caller, Record<string, string>>
  stop(): Promise<void>
}

/**
 * Measures every read on a database with this many payouts against one with fewer, alternately, and prints the medians.
 */
export async function measureScale(databaseUrl: string, payouts = PAYOUTS): Promise<void> {
  const filled: Filled[] = []
  const surroundings = await startSurroundings()
  try {
    const fewer = smallerThan(payouts)
    for (const count of [fewer, payouts]) {
      filled.push(await fill(databaseUrl, surroundings, `scale_${count}`, count, PORT + filled.length))
    }
    console.log(
      `| request | bytes, ${fewer} payouts | ${payouts} | ms, ${fewer} payouts | ${payouts} | times | |\n|---|---|---|---|---|---|---|`,
    )
    for (const [caller, path, mostTimes = 2] of REQUESTS) {
      // A request that fails doesn't end a measurement of an hour.
      const { times, bytes } = await compare(filled, caller, path).catch((error: Error) => {
        process.exitCode = 1
        return { times: [], bytes: [error.message, ''] }
      })
      const [small = Number.NaN, large = Number.NaN] = times
      const verdict = large > 300 || large > mostTimes * Math.max(small, 1) ? 'over' : ''
      console.log(
        `| ${path} | ${bytes.join(' | ')} | ${small.toFixed(1)} | ${large.toFixed(1)} | ${(large / small).toFixed(2)} | ${verdict} |`,
      )
    }
    // The services run chores, too.
    for (const { stop } of filled.splice(0, filled.length - 1)) await stop()
    const [largest] = filled.splice(0)
    await largest?.stop()
    if (largest) await measureChores(largest.url, surroundings)
  } finally {
    for (const { stop } of filled) await stop()
    await surroundings.ledger.close()
  }
}

async function fill(
  serverUrl: string,
  { token, relayKey, variables }: Surroundings,
  name: string,
  payouts: number,
  port: number,
): Promise<Filled> {
  const client = new Client({ connectionString: serverUrl })
  await client.connect()
  await client.query(`CREATE DATABASE ${name}`)
  await client.end()
  const url = serverUrl.replace(/\/[^/]*$/, `/${name}`)
  const store = openStore({ url })
  const began = performance.now()
  await store.database()
  const records = await fillDatabase(url, { payouts, token, relayKey })
  await store.close()
  console.log(`${payouts} payouts filled in ${((performance.now() - began) / 1000).toFixed(0)} s: ${await sizeOf(url)}`)
  const base = `http://127.0.0.1:${port}`
  const directory = await mkdtemp(join(tmpdir(), 'payroll-bench-'))
  const serving = await startServing(base, {
    ...variables,
    PUBLIC_URL: `http://localhost:${port}`,
    // Without a ledger, no chore changes what the requests read.
    STELLAR_RPC_URL: 'http://127.0.0.1:1',
    PORT: String(port),
    DATA_DIR: directory,
    DATABASE_URL: url,
    SESSION_SECRET: SECRET,
    OPERATOR_PASSWORD: PASSWORD,
    METRICS_TOKEN: TOKEN,
    CRON_SECRET: TOKEN,
  })
  const origin = `http://localhost:${port}`
  const sessions = { secret: SECRET, issuer: origin, audience: `${origin}/api`, ttl: 12 * 3600 }
  const bearer = async (sub: string) => {
    const session = await mintSession(sessions, { kind: 'ledger', sub }, new Date())
    return { authorization: `Bearer ${session}` }
  }
  const operator = composeOperator(SECRET, { password: PASSWORD, embeddedSecret: undefined })
  if (!operator) throw new Error('the dashboard is closed')
  return {
    url,
    base,
    records: { ...records, token },
    headers: {
      employer: await bearer(records.employer),
      'large employer': await bearer(records.largeEmployer),
      operator: { cookie: `operator-${port}=${await mintOperatorSession(operator, 'Bench', new Date())}` },
      token: { authorization: `Bearer ${TOKEN}` },
    },
    stop: async () => {
      await serving.stop()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

/** The bytes per payout of each table with its indexes. */
async function sizeOf(url: string): Promise<string> {
  const client = new Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query(`SELECT relname AS name, pg_total_relation_size(oid) AS bytes,
      pg_total_relation_size(oid) / (SELECT count(*) FROM payouts) AS each
    FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 2 DESC LIMIT 6`)
  await client.end()
  return rows
    .map(({ name, each }) => `${name} ${each}`)
    .join(', ')
    .concat(' bytes per payout')
}

/** The medians of a request on each database, measured alternately, and the bytes of each last response. */
async function compare(
  filled: readonly Filled[],
  caller: Caller,
  path: string,
): Promise<{ times: number[]; bytes: number[] }> {
  const times = filled.map((): number[] => [])
  const bytes = filled.map(() => 0)
  for (let round = -WARMING_UP; round < ROUNDS; round += 1) {
    for (const [index, { base, headers, records }] of filled.entries()) {
      const filledPath = path.replace(/\{(\w+)\}/g, (_, name: keyof Filled['records']) => records[name])
      const began = performance.now()
      const length = await read(`${base}${filledPath}`, headers[caller])
      if (length === undefined && round >= 0) throw new Error(`${filledPath} was refused`)
      if (length !== undefined) bytes[index] = length
      if (round >= 0) times[index]?.push(performance.now() - began)
    }
  }
  return { times: times.map((own) => own.sort((one, other) => one - other)[Math.floor(own.length / 2)] ?? 0), bytes }
}

/**
 * Reads a response; for a file, only its head and its first chunk. Resolves to its bytes, or to undefined if the service
 * cannot reach its database yet.
 */
async function read(url: string, headers: Record<string, string>): Promise<number | undefined> {
  const response = await fetch(url, { headers, redirect: 'manual' })
  if (response.status !== 200 && response.status !== 503) throw new Error(`${url} responded ${response.status}`)
  if (response.status === 503 || !url.includes('.csv')) {
    const { byteLength } = await response.arrayBuffer()
    return response.status === 200 ? byteLength : undefined
  }
  const reader = response.body?.getReader()
  let bytes = 0
  while (bytes < 10_000) {
    const part = await reader?.read()
    if (!part || part.done) return bytes
    bytes += part.value.length
  }
  await reader?.cancel()
  return bytes
}
