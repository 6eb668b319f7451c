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
 * share of a core: as if every interval had as much work, and `PROCESSES` processes ran the chores that are not shared.
 */
export async function measureChores(url: string, { variables }: Surroundings): Promise<void> {
  await makeChoresDue(url)
  console.log(
    `| chore | did | ms of the database in a round | share of a core, ${PROCESSES} processes |\n|---|---|---|---|`,
  )
  let sum = 0
  for (const name of CHORE_NAMES) {
    const { did, ms } = await measureChore(url, variables, name)
    const share = (ms * (SHARED.has(name) ? 1 : PROCESSES)) / CHORES_EVERY_MS
    sum += share
    console.log(`| ${name} | ${did.join(', ')} | ${ms.toFixed(1)} | ${percent(share)} |`)
  }
  console.log(`All chores take ${percent(sum)} of a core: ${sum < 0.01 ? 'below' : 'NOT below'} 1 %.`)
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
