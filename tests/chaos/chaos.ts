import { Keypair } from '@stellar/stellar-sdk'
import { and, eq, gte } from 'drizzle-orm'
import { Client } from 'pg'
import { transfers } from '#drizzle/schema/transfers.ts'
import { mintSession } from '#lib/auth/session.ts'
import { endow, enrol, type TestNetwork } from '#lib/cli/client/participants.ts'
import { runCommand } from '#lib/cli/process/command.ts'
import { readEnvironment } from '#lib/config/environment.ts'
import { generateRelayKey, publicHalf } from '#lib/config/relay-key.ts'
import { listChannels } from '#lib/dashboard/channels.ts'
import { type Database, openStore } from '#lib/db/connection.ts'
import { resumePayments } from '#lib/relay/resume.ts'
import { composeSettings } from '#lib/server/settings.ts'
import { openNetwork } from '#lib/stellar/network.ts'
import { MAY_HAVE_USED_NUMBER } from '#lib/transfers/rows.ts'
import type { Holder } from '#lib/wallet/keys.ts'
import { startPostgres } from '../bench/postgres.ts'
import { openApiClient } from '../support/api-client.ts'
import { startFaultProxy } from '../support/fault-proxy.ts'
import { employerWith } from '../support/fixtures.ts'
import { freePort } from '../support/port.ts'
import { startTestLedger } from '../support/test-ledger.ts'
import { describeLedger } from '../support/test-service.ts'
import { findUntrueEvents } from './archive.ts'
import { type Pair, type Party, runHistory, type Told } from './history.ts'
import { openLedgerPages } from './ledger-pages.ts'
import { findUntrueLines } from './lines.ts'
import { startInstance, startRelayProcess, unasked } from './processes.ts'
import { findUntrueRuns } from './run-truth.ts'
import { openRunEmployer, openRuns, outcomes, type RunEmployer } from './runs.ts'
import { findUntruths } from './truth.ts'

/** Histories that run at once, and how much happens in each. */
const PARTIES = 20
const STEPS = 20
const CHANNELS = 4
/** Employers of runs, and contractors that all of them pay. */
const EMPLOYERS = 5
const CONTRACTORS = 5
/** A transaction that is in flight when the relays stop applies within this many ledgers, or never. */
const IN_FLIGHT = 3
/** Milliseconds between two ledgers when nothing delays them. */
const CLOSE_MS = 200

const USAGE = `npm run chaos -- [--histories N] [--seed S]

Seeded histories with two services and two relays on PostgreSQL, each a process behind an RPC that lies. ${PARTIES} histories run
at once, and ${EMPLOYERS} employers have batches paid by the relays. Beside them run a relay whose channels have no account, and one that cannot reach its RPC. Processes are killed
and stopped, and restart with clocks that are 300 s off. The database goes away, or is restored from a backup, after which
payments stop until the relays have found what was lost. The ledger stands still or hurries. Nodes lag, drop, cut short, refuse, and are restored
from a backup. Some requests ask for an upgrade. Every answer, row and payee is compared with the ledger; a difference is
printed with its seed, and ends the command with 1.`

await runCommand({
  usage: USAGE,
  options: {
    histories: { type: 'string', default: '20' },
    seed: { type: 'string', default: '1' },
  },
  explain: (error) => error,
  run: ({ histories, seed }) => runHistories(Number(histories), Number(seed)),
})

/** Lets payments go on, as an operator does, if only payments of batches that the backup lacks keep them stopped. */
async function resumeLikeOperator(db: Database, token: string): Promise<void> {
  const channels = await listChannels(db, token, new Date())
  const problems = new Set(channels.flatMap(({ reconcileProblem }) => reconcileProblem ?? []))
  if (problems.size !== 1 || !problems.has('purpose-unknown')) return
  const actor = { kind: 'operator', sub: 'chaos' } as const
  await resumePayments({ db, now: new Date(), actor, token }, { note: 'payments of lost batches' })
}

/** Whether payments go on after a restore, and no channel has a higher number on the ledger than this database can explain. */
async function isReconciled({ rpc }: TestNetwork, db: Database): Promise<boolean> {
  const stops = await db.query.paymentStops.findMany()
  if (stops.some(({ since }) => since !== null)) return false
  for (const { address, adoptedSequence } of await db.query.relayChannels.findMany()) {
    if (adoptedSequence === null) continue
    const number = BigInt((await rpc.getAccount(address)).sequenceNumber())
    const isUsed = and(eq(transfers.account, address), gte(transfers.sequenceNumber, number), MAY_HAVE_USED_NUMBER)
    if (number > adoptedSequence && (await db.$count(transfers, isUsed)) === 0) return false
  }
  return true
}

/** What keeps payments stopped, for an untruth that a stop explains. */
async function describeStop(db: Database): Promise<string> {
  const stops = await db.query.paymentStops.findMany()
  const channels = await db.query.relayChannels.findMany()
  const withoutBigints = (_: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value)
  return JSON.stringify({ stops, channels }, withoutBigints)
}

/** Runs this many histories, starting with that seed, and ends the process. */
async function runHistories(histories: number, firstSeed: number): Promise<void> {
  const postgres = await startPostgres(await freePort())
  const admin = new Client({ connectionString: postgres.url })
  await admin.connect()
  await admin.query('CREATE DATABASE chaos')
  const databaseUrl = postgres.url.replace(/\/postgres$/, '/chaos')
  const store = openStore({ url: databaseUrl })

  const ledger = await startTestLedger({ closeMs: 0 })
  let standsStill = false
  const clock = setInterval(() => {
    if (!standsStill) ledger.devnet.closeLedger()
  }, CLOSE_MS)

  const channels = Array.from({ length: CHANNELS }, () => Keypair.random())
  for (const channel of channels) {
    await endow(ledger.network, ledger.issuer, await enrol(ledger.network, channel), 1_000_000_0000000n)
  }
  const relayKey = generateRelayKey()
  const variables = {
    PUBLIC_URL: 'http://localhost:3000',
    DATABASE_URL: databaseUrl,
    SESSION_SECRET: 'a secret for tests, long enough for HS256',
    SESSION_TTL: '86400',
    TRANSFER_WAIT: '15',
    // The quotas suffice for a long run, and are compared with the charged fees.
    SPONSOR_QUOTA_TRANSFERS: '1000000',
    SPONSOR_QUOTA_STROOPS: '100000000000',
    SPONSOR_DAILY_BUDGET: '100000000000',
    BATCH_ENABLED: 'true',
    RELAY_PRIVATE_KEY: JSON.stringify(relayKey),
    RELAY_PORT: '0',
    CHANNEL_SEEDS: channels.map((channel) => channel.secret()).join(','),
    ...describeLedger(ledger),
  }
  const { sessions } = composeSettings(readEnvironment(variables))
  const db = await store.database()
  const proxies = [ledger.proxy]
  while (proxies.length < 4) proxies.push(await startFaultProxy(ledger.devnet.rpcUrl))
  const [first, second, third, fourth] = proxies
  if (!first || !second || !third || !fourth) throw new Error('a proxy is missing')
  const instances = [await startInstance(variables, first), await startInstance(variables, second)]
  const deaf = await startFaultProxy(ledger.devnet.rpcUrl)
  deaf.rule(() => ({ status: 503 }))
  const strangers = channels.map(() => Keypair.random().secret()).join(',')
  const relays = [
    await startRelayProcess(variables, third),
    await startRelayProcess(variables, fourth),
    // These two can pay nothing.
    await startRelayProcess({ ...variables, CHANNEL_SEEDS: strangers }, third),
    await startRelayProcess(variables, deaf),
  ]

  let isAway = false
  /** Closes the database to everyone while `work` runs. Resolves to false if it is closed already. */
  async function withoutDatabase(work: () => Promise<unknown>): Promise<boolean> {
    if (isAway) return false
    isAway = true
    try {
      await admin.query('ALTER DATABASE chaos ALLOW_CONNECTIONS false')
      await admin.query(`SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = 'chaos'`)
      await work()
      return true
    } finally {
      await admin.query('ALTER DATABASE chaos ALLOW_CONNECTIONS true')
      isAway = false
    }
  }
  /** Waits until the ledger has closed this many more ledgers, and proxies have delivered what they delay. */
  async function waitForLedgers(count: number): Promise<void> {
    const read = async () => (await ledger.network.rpc.getLatestLedger()).sequence
    const first = await read()
    do await new Promise((resolve) => setTimeout(resolve, 1_000))
    while ((await read()) < first + count)
  }
  let isRestoring = false
  let hasBackup = false
  /** whether the database was restored, and a channel may not be reconciled yet */
  let isIncomplete = false
  /** unix ms */
  let backedUpAt = 0
  /** The moments that explain an untruth, with the latest ledger of each. */
  const moments: string[] = []
  const note = async (what: string) => {
    moments.push(`${what} ${(await ledger.network.rpc.getLatestLedger()).sequence}`)
  }
  let restores = 0
  let reconciliations = 0
  const pair: Pair = {
    instances,
    relays,
    proxies,
    network: ledger.network,
    readLedger: openLedgerPages(ledger.network),
    db,
    breakDatabase: async (milliseconds) => {
      if (isAway) return
      isAway = true
      try {
        if (milliseconds > 0) await admin.query('ALTER DATABASE chaos ALLOW_CONNECTIONS false')
        await admin.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'chaos'`)
        await new Promise((resolve) => setTimeout(resolve, milliseconds))
      } finally {
        await admin.query('ALTER DATABASE chaos ALLOW_CONNECTIONS true')
        isAway = false
      }
    },
    backUp: () =>
      withoutDatabase(async () => {
        backedUpAt = Date.now()
        await admin.query('DROP DATABASE IF EXISTS backup')
        await admin.query('CREATE DATABASE backup TEMPLATE chaos')
        await note('backup')
        hasBackup = true
      }),
    restore: async () => {
      if (!hasBackup || isAway || isRestoring) return false
      isRestoring = true
      isIncomplete = true
      const [services, hosts] = await Promise.all(
        [instances, relays].map((processes) => Promise.all(processes.map(({ halt }) => halt()))),
      )
      try {
        const isRestored = await withoutDatabase(async () => {
          await waitForLedgers(IN_FLIGHT)
          await admin.query('DROP DATABASE chaos WITH (FORCE)')
          await admin.query('CREATE DATABASE chaos TEMPLATE backup')
          await note('restore')
        })
        if (isRestored) restores += 1
        return isRestored
      } finally {
        await Promise.all((services ?? []).map((start) => start()))
        await runs.reconcile(backedUpAt)
        await Promise.all((hosts ?? []).map((start) => start()))
        isRestoring = false
      }
    },
    reconciled: async () => {
      if (isRestoring) return false
      await resumeLikeOperator(db, ledger.network.token)
      if (!(await isReconciled(ledger.network, db))) return false
      if (isIncomplete) {
        reconciliations += 1
        await note('reconciled')
      }
      isIncomplete = false
      return true
    },
    standStill: async (milliseconds) => {
      standsStill = true
      await new Promise((resolve) => setTimeout(resolve, milliseconds))
      standsStill = false
    },
    closeLedgers: (count) => {
      for (let closed = 0; closed < count; closed += 1) ledger.devnet.closeLedger()
    },
  }

  const rpcUrl = ledger.devnet.rpcUrl
  const trueNetwork = openNetwork({ name: 'local', passphrase: ledger.network.passphrase, rpcUrl, pollMs: 250 })
  const archive = { network: trueNetwork, token: ledger.network.token, database: async () => db }

  const api = { ...(await openApiClient({ base: instances[0]?.base ?? '', fetch })), db }

  /** An employer, a payee and a contractor, for every round of the run; each round adds payouts. */
  async function makeParty(): Promise<{ party: Party; prepare(): Promise<void> }> {
    const endowed = await ledger.endowPayer()
    const identity = { kind: 'ledger', sub: endowed.address } as const
    const payer = { ...endowed, session: await mintSession(sessions, identity, new Date()) }
    const payee = await enrol(ledger.network)
    const employer = await employerWith(api, payer)
    const contractor = await employer.engage('a payee', { address: payee.signer.publicKey() })
    const party: Party = { payer, payee, payouts: [], signed: [] }
    const prepare = async () => {
      const prepared = [await employer.prepare([contractor]), await employer.prepare([contractor])]
      party.payouts = prepared.flatMap(({ payouts }) => payouts.map(({ id }) => id))
    }
    return { party, prepare }
  }

  /** The last contractor of an employer has an account on the ledger's network, but is not registered with the token. */
  async function makeRunEmployer() {
    const endowed = await ledger.endowPayer(1_000_0000000n)
    const identity = { kind: 'ledger', sub: endowed.address } as const
    const payer = { ...endowed, session: await mintSession(sessions, identity, new Date()) }
    const employer = await employerWith(api, payer)
    const contractors = []
    for (const { address } of payees) contractors.push(await employer.engage(address, { address }))
    return openRunEmployer(payer, [...contractors, await employer.engage('not registered')])
  }
  const payees: Holder[] = []
  while (payees.length < CONTRACTORS) payees.push(await enrol(ledger.network))
  const employers: RunEmployer[] = []
  while (employers.length < EMPLOYERS) employers.push(await makeRunEmployer())
  const runs = openRuns({
    network: ledger.network,
    relay: { publicKey: publicHalf(relayKey), channels: channels.map((channel) => channel.publicKey()) },
    issuer: ledger.issuer,
    employers,
    bases: instances.map(({ base }) => base),
    isIncomplete: () => isIncomplete,
  })
  pair.runs = runs

  const made: Awaited<ReturnType<typeof makeParty>>[] = []
  // A few at a time: a ledger has room for few calls of the token.
  while (made.length < PARTIES) made.push(...(await Promise.all(Array.from({ length: 5 }, makeParty))))
  const parties = made.map(({ party }) => party)

  let faults = 0
  const told: Told[] = []
  let untrue = 0
  const rounds = Math.ceil(histories / PARTIES)
  for (let round = 0; round < rounds; round += 1) {
    const seed = firstSeed + round
    for (const { prepare } of made) await prepare()
    const happened = await runHistory(pair, parties, seed, STEPS * PARTIES)
    faults += happened.faults
    told.push(...happened.told)
    const untruths = [
      ...(await findUntruths(pair, happened, ledger.sponsor.publicKey())),
      ...(await findUntrueLines(pair, parties)),
      ...(await findUntrueRuns(pair, runs, payees)),
      ...(await findUntrueEvents(archive)),
      ...unasked.splice(0),
    ]
    untrue += untruths.length
    for (const untruth of untruths) console.error(`seed ${seed}: ${untruth}`)
    if (untruths.length > 0) console.error(`seed ${seed}: ledgers: ${moments.join(', ')}\n${await describeStop(db)}`)
    console.log(
      `seed ${seed}: ${(round + 1) * PARTIES} histories, ${told.length} answers, ${faults} faults, ${untrue} untruths so far`,
    )
  }
  const ends = (rows: readonly { status: string }[]) =>
    Object.entries(Object.groupBy(rows, ({ status }) => status))
      .map(([status, all]) => `${all?.length} ${status}`)
      .join(', ')
  console.log(`transfers: ${ends(await db.query.transfers.findMany())}`)
  const lines = await db.query.relayLines.findMany()
  console.log(`lines: ${ends(lines.map(({ outcome }) => ({ status: outcome ?? 'open' })))}`)
  const allPayouts = await db.query.payouts.findMany()
  const isOfRun = new Set(lines.map(({ payout }) => payout))
  console.log(`payouts of runs: ${ends(allPayouts.filter(({ id }) => isOfRun.has(id)))}`)
  for (const [outcome, times] of [...outcomes].toSorted()) console.log(`${times} × ${outcome}`)
  console.log(`restores of the database: ${restores}, reconciled: ${reconciliations}`)
  console.log(`answers: ${ends(told.map(({ status, body }) => ({ status: `${status} ${body.code ?? ''}`.trim() })))}`)
  for (const { end } of [...instances, ...relays]) end()
  clearInterval(clock)
  await Promise.all([deaf, ...proxies.slice(1)].map((proxy) => proxy.close()))
  await ledger.close()
  await store.close()
  await admin.end()
  await postgres.stop()
  process.exit(untrue === 0 ? 0 : 1)
}
