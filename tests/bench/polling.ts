import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Keypair } from '@stellar/stellar-sdk'
import { sql } from 'drizzle-orm'
import { mintSession } from '#lib/auth/session.ts'
import { startServing } from '#lib/cli/process/serve.ts'
import { batchRow, contractorRow, identityRow, insertRows } from '#lib/cli/seed/rows.ts'
import { openStore } from '#lib/db/connection.ts'
import type { Figure } from './directory.ts'
import { startFloor } from './floor.ts'
import { cpuMsOf, load } from './load.ts'

const BATCHES = 10_000
const MAX_CONTRACTORS = 50_000
/** Other organisations, and how many contractors each has. */
const STRANGERS = { organisations: 10, contractors: 8_900 }
/** Enough users that no per-user limit slows them down. */
const USERS = 200
const ROUNDS = 7
/** Warm-up rounds that compile the code and are not measured. */
const WARMING_UP = 3
const SERVICE_PORT = 3920
const FLOOR_PORT = 3921
const SECRET = 'a secret for one run of the benchmark, long enough'

/** An employer with many batches, on a separate service. */
interface PollingService {
  base: string
  pid: number
  session: string
  /** the seed of the account that the session is of */
  seed: string
  /** sessions of many users of the same organisation: one user may send 50 requests a second */
  sessions: string[]
  /** sessions of many users, each with another organisation */
  otherSessions: string[]
  organisation: string
  batch: string
  /** a batch with a payout for each of the maximum number of contractors */
  largeBatch: string
  close(): Promise<void>
}

/**
 * Starts the service on the database at `databaseUrl`, which gets an employer with 10,000 batches and payouts, and others
 * with 89,000 contractors.
 */
export async function startPollingService(
  databaseUrl: string,
  { port = SERVICE_PORT, variables = {}, output = 'ignore' as 'ignore' | number } = {},
): Promise<PollingService> {
  const base = `http://127.0.0.1:${port}`
  const directory = await mkdtemp(join(tmpdir(), 'payroll-bench-'))
  const configuration = {
    PORT: String(port),
    DATA_DIR: directory,
    DATABASE_URL: databaseUrl,
    SESSION_SECRET: SECRET,
    STELLAR_RPC_URL: 'http://127.0.0.1:1',
    OPERATOR_PASSWORD: 'the password of the benchmark',
  }
  const serving = await startServing(base, { ...configuration, ...variables }, output)
  const account = Keypair.random()
  const identity = { kind: 'ledger', sub: account.publicKey() } as const
  const origin = `http://localhost:${port}`
  const sessions = { secret: SECRET, issuer: origin, audience: `${origin}/api`, ttl: 3600 }
  const session = await mintSession(sessions, identity, new Date())
  const mint = async (sub: string) => await mintSession(sessions, { kind: 'ledger', sub }, new Date())
  const colleagues = Array.from({ length: USERS }, () => Keypair.random().publicKey())
  const others = Array.from({ length: USERS }, () => Keypair.random().publicKey())
  const otherSessions = await Promise.all(others.map(mint))
  const headers = { Authorization: `Bearer ${session}` }
  const named = { method: 'PATCH', body: JSON.stringify({ orgName: 'the bench' }) }
  const found = await fetch(`${base}/api/me`, { ...named, headers: { ...headers, 'Content-Type': 'application/json' } })
    .then((answer) => answer.json() as Promise<{ employer: { orgId: string } }>)
    .then(async ({ employer }) => ({
      organisation: employer.orgId,
      ...(await fill(databaseUrl, employer.orgId, colleagues)),
    }))
    .catch(async (error: unknown) => {
      await serving.stop()
      throw error
    })
  return {
    base,
    pid: serving.pid,
    session,
    seed: account.secret(),
    sessions: [session, ...(await Promise.all(colleagues.map(mint)))],
    otherSessions,
    ...found,
    close: async () => {
      await serving.stop()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

/** Resolves to the ids of one of the batches and of the large one. */
async function fill(
  databaseUrl: string,
  organisation: string,
  colleagues: readonly string[],
): Promise<{ batch: string; largeBatch: string }> {
  const store = openStore({ url: databaseUrl })
  const db = await store.database()
  const identities = colleagues.map((sub) => identityRow({ sub, organisation }))
  await insertRows(db, { identities, contractors: [contractorRow({ organisation, name: 'payee' })] })
  await db.execute(sql`INSERT INTO batches (organisation, name, status, payout_count, created_at)
    SELECT ${organisation}, 'batch ' || n, 'ready', 1, now() - n * interval '1 minute' FROM generate_series(1, ${BATCHES}) n`)
  await db.execute(sql`INSERT INTO payouts (organisation, batch, contractor, status, encrypted_amount, created_at)
    SELECT b.organisation, b.id, c.id, 'ready', 'sealed', b.created_at
    FROM batches b JOIN contractors c USING (organisation) WHERE organisation = ${organisation}`)
  const createdAt = new Date(Date.now() - 365 * 86_400_000)
  const large = batchRow({ organisation, status: 'ready', payoutCount: MAX_CONTRACTORS, createdAt })
  await insertRows(db, { batches: [large] })
  // The payees are marked as removed, so that the organisation has room for more contractors.
  await db.execute(sql`INSERT INTO contractors (organisation, name, status, invite_expires_at, created_at, deleted_at)
    SELECT ${organisation}, 'payee ' || n, 'ready', now(), now() - interval '1 year', now()
    FROM generate_series(2, ${MAX_CONTRACTORS}::int) n`)
  await db.execute(sql`INSERT INTO payouts (organisation, batch, contractor, status, encrypted_amount, created_at)
    SELECT organisation, ${large.id}, id, 'ready', 'sealed', now() - interval '1 year'
    FROM contractors WHERE organisation = ${organisation}`)
  const { organisations, contractors } = STRANGERS
  await db.execute(sql`WITH others AS (
      INSERT INTO organisations (name) SELECT 'other ' || n FROM generate_series(1, ${organisations}::int) n RETURNING id
    ) INSERT INTO contractors (organisation, name, status, email, email_folded, invite_expires_at)
    SELECT id, 'payee', 'invited', n || '@example.org', n || '@example.org', now() + interval '1 day'
    FROM others, generate_series(1, ${contractors}::int) n`)
  await db.execute(sql`ANALYZE`)
  const batch = await db.query.batches.findFirst({ where: (row, { eq }) => eq(row.organisation, organisation) })
  await store.close()
  return { batch: batch?.id ?? '', largeBatch: large.id }
}

/**
 * Measures the operations that frontends poll, in comparison with a minimal application on the same Next that verifies
 * the session and runs one statement.
 */
export async function measurePolling(databaseUrl: string): Promise<Figure[]> {
  const service = await startPollingService(databaseUrl)
  const floor = await startFloor(FLOOR_PORT, { DATABASE_URL: databaseUrl, SESSION_SECRET: SECRET })
  try {
    const { sessions, organisation, batch } = service
    const figures: Figure[] = []
    // The minimal application responds with the same number of rows.
    for (const [read, path, rows] of [
      ['status', `/batches/${batch}/status`, 1],
      ['me', '/me', 1],
      ['batches', '/batches?limit=100', 100],
      ['batches', '/batches', 1000],
      ['payouts', '/payouts?limit=100', 100],
      ['payouts', '/payouts', 1000],
    ] as const) {
      const query = new URLSearchParams({ organisation, batch, rows: String(rows) })
      const ours = { url: `${service.base}/api${path}`, pid: service.pid, sessions }
      const bare = { url: `http://127.0.0.1:${FLOOR_PORT}/floor/${read}?${query}`, pid: floor.pid ?? 0, sessions }
      const { rate, otherRate, cost, otherCost } = await compare(ours, bare)
      const share = `${(rate / otherRate).toFixed(2)} of the floor's ${otherRate.toFixed(0)}/s`
      figures.push({
        name: `GET ${path.replace(batch, '{id}')}`,
        found: `${share}; CPU ${cost.toFixed(2)} to ${otherCost.toFixed(2)} ms`,
        goal: 'at least 0.80 of the floor',
      })
    }
    return figures
  } finally {
    floor.kill('SIGKILL')
    await service.close()
  }
}

export interface Target {
  url: string
  pid: number
  sessions: readonly string[]
}

/**
 * The responses per second of one target in comparison with another's, and the cost of a response of each, in
 * milliseconds.
 */
interface Comparison {
  rate: number
  otherRate: number
  cost: number
  otherCost: number
}

/** Measured alternately, so that both run under the same load; the medians of the rounds. */
export async function compare(ours: Target, other: Target): Promise<Comparison> {
  const rates: [number[], number[]] = [[], []]
  const costs: [number[], number[]] = [[], []]
  for (let round = -WARMING_UP; round < ROUNDS; round += 1) {
    for (const [index, { url, pid, sessions }] of [ours, other].entries()) {
      const before = cpuMsOf(pid)
      const report = await load(url, { sessions }, { connections: 8, seconds: 1 })
      if (report.others > 0) throw new Error(`${url}: ${report.others} of ${report.answers} answers were not 200`)
      if (round < 0) continue
      rates[index]?.push(report.answers / report.seconds)
      costs[index]?.push((cpuMsOf(pid) - before) / report.answers)
    }
  }
  const [rate, otherRate] = rates.map(median) as [number, number]
  const [cost, otherCost] = costs.map(median) as [number, number]
  return { rate, otherRate, cost, otherCost }
}

const median = (values: number[]) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
