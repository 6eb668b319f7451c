import { Client } from 'pg'
import { readEnvironment } from '#lib/config/environment.ts'
import { generateRelayKey, publicHalf } from '#lib/config/relay-key.ts'
import { thumbprintOf } from '#lib/relay/queue.ts'
import { CHORE_NAMES, CHORES_EVERY_MS, type Chore, runChore, SHARED } from '#lib/server/maintenance.ts'
import { startService } from '#lib/server/start.ts'
import { makeChoresDue } from '../support/due-chores.ts'
import { startTestLedger, type TestLedger } from '../support/test-ledger.ts'
import { describeLedger } from '../support/test-service.ts'

const ROUNDS = 3
/** What a million payouts a month leave to do between two rounds. */
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
    relayKey: await thumbprintOf(key),
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
 * Measures the time that the database spends on each chore while several rounds of work are due, and prints it with its
 * share of a core if every interval had as much work, and if it had that of a million payouts a month. `PROCESSES`
 * processes run the chores that are not shared.
 */
export async function measureChores(url: string, { variables }: Surroundings): Promise<void> {
  await makeChoresDue(url)
  console.log(
    `| chore | did | ms of the database in a round | share of a core, ${PROCESSES} processes | with ${USUALLY_DUE} due |\n|---|---|---|---|---|`,
  )
  const sum = { full: 0, usual: 0 }
  for (const name of CHORE_NAMES) {
    const { did, ms } = await measureChore(url, variables, name)
    const share = (ms * (SHARED.has(name) ? 1 : PROCESSES)) / CHORES_EVERY_MS
    const records = did.reduce<number>((all, one) => all + (one ?? 0), 0)
    const usual = share * Math.min(1, (USUALLY_DUE * ROUNDS) / Math.max(1, records))
    sum.full += share
    sum.usual += usual
    console.log(`| ${name} | ${did.join(', ')} | ${ms.toFixed(1)} | ${percent(share)} | ${percent(usual)} |`)
  }
  const verdict = sum.usual < 0.01 ? 'below' : 'NOT below'
  console.log(
    `All chores take ${percent(sum.usual)} of a core, ${verdict} 1 %; ${percent(sum.full)} with as much due in every round.`,
  )
}

const percent = (share: number) => `${(share * 100).toFixed(3)} %`

async function measureChore(
  url: string,
  variables: Record<string, string>,
  name: Chore,
): Promise<{ did: (number | null)[]; ms: number }> {
  const service = await startService(readEnvironment({ ...variables, DATABASE_URL: url }), undefined, 0)
  const did: (number | null)[] = []
  const before = await readActiveMs(url)
  for (let round = 0; round < ROUNDS; round += 1) did.push(await runChore(service, name))
  // A connection reports its last statements when it ends.
  await service.close()
  return { did, ms: ((await readActiveMs(url)) - before) / ROUNDS }
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
