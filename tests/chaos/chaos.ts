import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { mintSession } from '#lib/auth/session.ts'
import { enrol } from '#lib/cli/participants.ts'
import { readEnvironment } from '#lib/config/environment.ts'
import { openStore } from '#lib/db/connection.ts'
import { composeSettings } from '#lib/server/settings.ts'
import { startPostgres } from '../bench/postgres.ts'
import { openApiClient } from '../support/api-client.ts'
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts'
import { employerWith } from '../support/fixtures.ts'
import { freePort } from '../support/port.ts'
import { startTestLedger } from '../support/test-ledger.ts'
import { describeLedger, type SignedInPayer } from '../support/test-service.ts'
import { type Instance, type Pair, type Party, runHistory } from './history.ts'
import { findUntruths } from './truth.ts'

/** Histories that run at once, and how much happens in each. */
const PARTIES = 20
const STEPS = 14

const { values } = parseArgs({
  options: {
    histories: { type: 'string', default: '30' },
    seed: { type: 'string', default: '1' },
    help: { type: 'boolean', short: 'h' },
  },
})
if (values.help) {
  console.log('npm run chaos -- [--histories N] [--seed S]: seeded histories with two service processes on PostgreSQL')
  process.exit(0)
}

/** A service process behind an RPC of its own. */
async function startInstance(
  variables: Record<string, string>,
  proxy: FaultProxy,
): Promise<Instance & { base: string; end(): void }> {
  const port = await freePort()
  const base = `http://localhost:${port}`
  let child: ChildProcess
  const start = async () => {
    child = spawn(process.execPath, [new URL('service-process.ts', import.meta.url).pathname], {
      stdio: ['ignore', 'pipe', 'ignore'],
      env: { ...process.env, ...variables, PORT: String(port), STELLAR_RPC_URL: proxy.url },
    })
    await new Promise<void>((resolve, reject) => {
      child.stdout?.on('data', (said: Buffer) => {
        if (said.toString().split('\n').includes('ready')) resolve()
      })
      child.once('exit', (code) => reject(new Error(`a service ended with ${code}`)))
    })
  }
  await start()
  const ask = async (path: string, payer: SignedInPayer, body?: unknown) => {
    const response = await fetch(`${base}/api${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { Authorization: `Bearer ${payer.session}`, 'Content-Type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }
  return {
    post: (payer, request) => ask('/transfer', payer, request),
    look: async (payer) => void (await ask('/payouts', payer)),
    kill: async () => {
      const gone = once(child, 'exit')
      child.kill('SIGKILL')
      await gone
      await start()
    },
    freeze: async (milliseconds) => {
      child.kill('SIGSTOP')
      await new Promise((resolve) => setTimeout(resolve, milliseconds))
      child.kill('SIGCONT')
    },
    base,
    end: () => child.kill('SIGKILL'),
  }
}

const postgres = await startPostgres(await freePort())
const store = openStore({ url: postgres.url })
const ledger = await startTestLedger()
const second = await startFaultProxy(ledger.devnet.rpcUrl)
const variables = {
  PUBLIC_URL: 'http://localhost:3000',
  DATABASE_URL: postgres.url,
  SESSION_SECRET: 'a secret for tests, long enough for HS256',
  TRANSFER_WAIT: '4',
  ...describeLedger(ledger),
}
const { sessions } = composeSettings(readEnvironment(variables))
const db = await store.database()
const instances = await Promise.all([ledger.proxy, second].map((proxy) => startInstance(variables, proxy)))
const pair: Pair = {
  instances,
  proxies: [ledger.proxy, second],
  network: ledger.network,
  db,
  breakDatabase: async () => {
    await db.execute(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`,
    )
  },
}

async function makeParty(): Promise<Party> {
  const endowed = await ledger.endowPayer()
  const identity = { kind: 'ledger', sub: endowed.address } as const
  const payer = { ...endowed, session: await mintSession(sessions, identity, new Date()) }
  const payee = (await enrol(ledger.network)).signer.publicKey()
  const employer = await employerWith(
    { ...(await openApiClient({ base: instances[0]?.base ?? '', fetch })), db },
    payer,
  )
  const contractor = await employer.engage('a payee', { address: payee })
  const payouts: string[] = []
  for (let month = 0; month < 3; month += 1) {
    const [payout] = (await employer.prepare([contractor])).payouts
    if (payout) payouts.push(payout.id)
  }
  return { payer, payee, payouts }
}

let faults = 0
let answers = 0
let untrue = 0
const firstSeed = Number(values.seed)
const rounds = Math.ceil(Number(values.histories) / PARTIES)
for (let round = 0; round < rounds; round += 1) {
  // A few at a time: a ledger has room for about fifteen calls of the token.
  const parties: Party[] = []
  while (parties.length < PARTIES) parties.push(...(await Promise.all(Array.from({ length: 5 }, makeParty))))
  const happened = await runHistory(pair, parties, firstSeed + round, STEPS * PARTIES)
  faults += happened.faults
  answers += happened.told.length
  const untruths = await findUntruths(pair, happened, ledger.sponsor.publicKey())
  untrue += untruths.length
  for (const untruth of untruths) console.error(`seed ${firstSeed + round}: ${untruth}`)
  console.log(`${(round + 1) * PARTIES} histories, ${answers} answers, ${faults} faults, ${untrue} untruths`)
}
const ends = Object.entries(Object.groupBy(await db.query.transfers.findMany(), ({ status }) => status))
console.log(ends.map(([status, transfers]) => `${transfers?.length} ${status}`).join(', '))
for (const { end } of instances) end()
await second.close()
await ledger.close()
await store.close()
await postgres.stop()
process.exit(untrue === 0 ? 0 : 1)
