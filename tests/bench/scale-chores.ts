import { Client } from 'pg'
import { readEnvironment } from '#lib/config/environment.ts'
import { generateRelayKey, publicHalf } from '#lib/config/relay-key.ts'
import { CHORE_NAMES, CHORES_EVERY_MS, type Chore, runChore, SHARED } from '#lib/server/maintenance.ts'
import { startService } from '#lib/server/start.ts'
import { keyIdOf } from '#lib/wallet/seal.ts'
import { makeChoresDue } from '../support/due-chores.ts'
import { startTestLedger, type TestLedger } from '../support/test-ledger.ts'
import { describeLedger } from '../support/test-service.ts'

const ROUNDS = 3
/** More than any chore of a filled database needs until nothing is due. */
const MAX_ROUNDS = 200
/** Records due per round at a million payouts a month. */
const USUALLY_DUE = Math.ceil((1_000_000 / (30 * 86_400)) * (CHORES_EVERY_MS / 1_000))
/** Each of them runs the chores that are not shared. */
const PROCESSES = 8

/** A ledger with the token of a filled database, and the key of its relays. */
export interface Surroundings {
  ledger: TestLedger
  token: string
  relayKey: string
  /** of a service on the database */
  variables: Record<string, string>
}

export async function startSurroundings(): Promise<Surroundings> {
  const key = publicHalf(generateRelayKey())
  const ledger = await startTestLedger({ closeMs: 1_000 })
  return {
    ledger,
    token: ledger.devnet.deployment.contracts.token,
    relayKey: await keyIdOf(key),
    variables: {
      ...describeLedger(ledger),
      PUBLIC_URL: 'http://localhost:3000',
      SESSION_SECRET: 'a secret for one run of the benchmark, long enough',
      BATCH_ENABLED: 'true',
      RELAY_PUBLIC_KEY: JSON.stringify(key),
    },
  }
}

/**
 * Measures the time that the database spends on each chore, with several rounds of work due and with none, and prints its
 * share of a core. `PROCESSES` processes run the chores that are not shared.
 */
export async function measureChores(url: string, { variables }: Surroundings): Promise<void> {
  await makeChoresDue(url)
  console.log(
    `| chore | did | ms of the database in a round | with nothing due | share of a core, ${PROCESSES} processes | with ${USUALLY_DUE} due |\n|---|---|---|---|---|---|`,
  )
  const sum = { full: 0, usual: 0 }
  for (const name of CHORE_NAMES) {
    const full = await measureRounds(url, variables, name, ROUNDS)
    await measureRounds(url, variables, name, MAX_ROUNDS)
    const idle = await measureRounds(url, variables, name, ROUNDS)
    const each = Math.max(0, full.ms - idle.ms) / Math.max(USUALLY_DUE, ...full.did)
    const [share, usual] = [full.ms, idle.ms + USUALLY_DUE * each].map(
      (ms) => (ms * (SHARED.has(name) ? 1 : PROCESSES)) / CHORES_EVERY_MS,
    ) as [number, number]
    sum.full += share
    sum.usual += usual
    const times = `${full.ms.toFixed(1)} | ${idle.ms.toFixed(1)} | ${percent(share)} | ${percent(usual)}`
    console.log(`| ${name} | ${full.did.join(', ')} | ${times} |`)
  }
  const verdict = sum.full < 0.01 ? 'below' : 'NOT below'
  console.log(
    `With this much work in every round, all chores take ${percent(sum.full)} of a core, ${verdict} 1 %; at a million payouts a month, ${percent(sum.usual)}.`,
  )
}

const percent = (share: number) => `${(share * 100).toFixed(3)} %`

/** Runs a chore until nothing is due, at most `rounds` times and at least ROUNDS times. */
async function measureRounds(
  url: string,
  variables: Record<string, string>,
  name: Chore,
  rounds: number,
): Promise<{ did: number[]; ms: number }> {
  const service = await startService(readEnvironment({ ...variables, DATABASE_URL: url }), undefined, 0)
  const did: number[] = []
  const before = await readActiveMs(url)
  while (did.length < ROUNDS || (did.length < rounds && did.at(-1) !== 0)) {
    const done = await runChore(service, name)
    if (done === null) throw new Error(`the chore ${name} failed`)
    did.push(done)
  }
  // A connection reports its last statements when it ends.
  await service.close()
  return { did, ms: ((await readActiveMs(url)) - before) / did.length }
}

/** The time that the database has spent on statements so far. */
async function readActiveMs(url: string): Promise<number> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query(
      'SELECT active_time AS ms FROM pg_stat_database WHERE datname = current_database()',
    )
    return rows[0].ms
  } finally {
    await client.end()
  }
}
