import { setTimeout } from 'node:timers/promises'
import { Keypair } from '@stellar/stellar-sdk'
import { and, eq } from 'drizzle-orm'
import { payouts } from '#drizzle/schema/directory.ts'
import { relayJobs } from '#drizzle/schema/relay.ts'
import { transfers } from '#drizzle/schema/transfers.ts'
import { ingest } from '#lib/archive/ingest.ts'
import { endow, enrol, openTestNetwork, sendAndWait, type TestNetwork } from '#lib/cli/client/participants.ts'
import { batchRow, contractorRow, insertRows, payoutRow } from '#lib/cli/seed/rows.ts'
import { publicHalf } from '#lib/config/relay-key.ts'
import { admitUser, becomeEmployer } from '#lib/directory/users.ts'
import { startRun } from '#lib/relay/run.ts'
import { buildDelegation } from '#lib/wallet/calls.ts'
import type { Opening } from '#lib/wallet/commitment.ts'
import type { Holder } from '#lib/wallet/keys.ts'
import { hashSeal, type Manifest, type ManifestDelegation, signManifest } from '#lib/wallet/manifest.ts'
import { sealPayout } from '#lib/wallet/seal.ts'
import { keypairSigner } from '#lib/wallet/signer.ts'
import type { CountingProxy } from './counting-proxy.ts'
import type { Figure } from './directory.ts'
import { onLedger, type RelayStage, span, startHost } from './relay-stage.ts'

const PAYOUTS = 200
const CHANNELS = 5
const PROVED = 10
const AMOUNT = 1_000n
/** How many registrations fit into a ledger. */
const SIDE_BY_SIDE = 8
/** Delegations last longer than any run. */
const LIFETIME_LEDGERS = 100_000

/**
 * Runs of a batch: how many ledgers they take, and how many calls the relay and the service make at the RPC.
 * @param only `5`, `1` or `proved`: just the run of 200 over that many channels, or the one with real proofs
 */
export async function measureRuns(databaseUrl: string, only?: string): Promise<Figure[]> {
  const isMeasured = (name: string) => only === undefined || only === name
  const many = [
    { channels: CHANNELS, ledgers: 45 },
    { channels: 1, ledgers: 205 },
  ].filter(({ channels }) => isMeasured(String(channels)))
  const figures: Figure[] = []
  if (many.length > 0) {
    const quick = { proofs: 'stand-in', closeMs: 1000, channels: CHANNELS } as const
    await onLedger(databaseUrl, quick, async (stage) => {
      const payees = await enrolPayees(await openNetwork(stage), PAYOUTS)
      for (const goal of many) figures.push(...(await measureRun(stage, payees, goal)))
    })
  }
  if (isMeasured('proved')) {
    const proving = { proofs: 'real', closeMs: 5000, channels: 1 } as const
    const proved = await onLedger(databaseUrl, proving, async (stage) => {
      const payees = await enrolPayees(await openNetwork(stage), PROVED)
      return await measureRun(stage, payees, { channels: 1, ledgers: 12 })
    })
    figures.push(...proved.slice(0, 1).map((figure) => ({ ...figure, name: `${figure.name}, real proofs, 5 s` })))
  }
  return figures
}

const openNetwork = ({ devnet, prover }: RelayStage) => openTestNetwork(`${devnet.url}/deployment.json`, prover)

async function enrolPayees(network: TestNetwork, count: number): Promise<Holder[]> {
  const payees: Holder[] = []
  while (payees.length < count) {
    const size = Math.min(SIDE_BY_SIDE, count - payees.length)
    payees.push(...(await Promise.all(Array.from({ length: size }, () => enrol(network)))))
  }
  return payees
}

async function measureRun(
  stage: RelayStage,
  payees: readonly Holder[],
  { channels: count, ledgers }: { channels: number; ledgers: number },
): Promise<Figure[]> {
  const { proxy } = stage
  const seeds = stage.variables.CHANNEL_SEEDS.split(',').slice(0, count)
  const host = await startHost({ ...stage.variables, CHANNEL_SEEDS: seeds.join() })
  try {
    const channels = seeds.map((seed) => Keypair.fromSecret(seed).publicKey())
    // A host's first run does the reads that happen only once.
    await run(stage, { payees: payees.slice(0, count), channels })
    const applied = await run(stage, { payees, channels, onStart: proxy.reset })
    const name = `a run of ${payees.length} over ${count} channel${count === 1 ? '' : 's'}`
    return [
      { name, found: `${span(applied)} ledgers, ${applied.length} paid`, goal: `at most ${ledgers}, all paid` },
      { name: `${name}: RPC calls`, found: describeCalls(proxy, applied.length), goal: 'at most 2.5 per payout' },
    ]
  } finally {
    await host.stop()
  }
}

function describeCalls(proxy: CountingProxy, paid: number): string {
  const methods = Object.entries(proxy.methods()).toSorted(([, one], [, other]) => other - one)
  const each = methods.map(([method, count]) => `${method} ${(count / paid).toFixed(2)}`).join(', ')
  return `${(proxy.count() / paid).toFixed(3)} per payout: ${each}`
}

interface RunTerms {
  payees: readonly Holder[]
  channels: readonly string[]
  /** called once the employer has delegated */
  onStart?: () => void
}

/** Pays one batch of a new employer from its delegations; resolves to the ledgers of its payments. */
async function run(stage: RelayStage, { payees, channels, onStart }: RunTerms): Promise<number[]> {
  const { service, devnet } = stage
  const { batch, settings, sponsor } = service
  if (!batch || !sponsor || !settings.relay) throw new Error('runs are off')
  const network = await openNetwork(stage)
  const db = await service.database()
  const employer = await enrol(network)
  const opening = await endow(
    network,
    Keypair.fromSecret(devnet.issuerSecret),
    employer,
    AMOUNT * BigInt(payees.length),
  )
  const delegations = await delegate(network, employer, { channels, payouts: payees.length }, opening)
  const identity = { kind: 'ledger', sub: employer.address } as const
  const context = { db, now: new Date() }
  const { organisation } = await becomeEmployer(context, await admitUser(context, identity))
  const contractors = payees.map(({ address }) => contractorRow({ organisation, address }))
  const row = batchRow({ organisation, status: 'ready', payoutCount: payees.length })
  const key = publicHalf(settings.relay.key)
  const rows = await Promise.all(
    payees.map(async ({ address }, index) => {
      const contractor = contractors[index]?.id ?? ''
      const spender = channels[index % channels.length] ?? ''
      const encryptedAmount = await sealPayout(key, { batch: row.id, contractor, spender }, AMOUNT)
      const fields = { contractor, encryptedAmount, organisation, batch: row.id, address }
      const payout = payoutRow({ ...fields, status: 'ready' })
      const line = { contractor, address, channel: spender, sealHash: hashSeal(encryptedAmount), payout: payout.id }
      return { payout, line }
    }),
  )
  await insertRows(db, { contractors, batches: [row], payouts: rows.map(({ payout }) => payout) })
  const manifest: Manifest = {
    passphrase: network.passphrase,
    token: network.token,
    batch: row.id,
    account: employer.address,
    delegations,
    payouts: rows.map(({ line }) => line),
  }
  const signature = await signManifest(keypairSigner(employer.signer), manifest)
  // The archive reads the payloads of the delegations, which the service has not sponsored here.
  if (service.archive) await ingest(service.archive)
  onStart?.()
  await startRun(
    {
      db,
      user: await admitUser({ db, now: new Date() }, identity),
      session: { ...identity, id: 'bench', expiresAt: new Date(Date.now() + 3_600_000) },
      batch,
      network: service.network,
      token: network.token,
      limits: sponsor.limits,
      now: new Date(),
    },
    { id: row.id, signature },
  )
  while ((await db.$count(relayJobs, and(eq(relayJobs.batch, row.id), eq(relayJobs.status, 'running')))) > 0) {
    await setTimeout(200)
  }
  const paid = await db
    .select({ ledger: transfers.ledger })
    .from(payouts)
    .innerJoin(transfers, eq(transfers.id, payouts.transfer))
    .where(and(eq(payouts.batch, row.id), eq(payouts.status, 'paid')))
  return paid.flatMap(({ ledger }) => ledger ?? [])
}

/** Delegates to each channel, one channel per ledger, the sum of the channel's payouts. */
async function delegate(
  network: TestNetwork,
  employer: Holder,
  { channels, payouts: total }: { channels: readonly string[]; payouts: number },
  start: Opening,
): Promise<ManifestDelegation[]> {
  const { sequence } = await network.rpc.getLatestLedger()
  const liveUntilLedger = sequence + LIFETIME_LEDGERS
  let opening = start
  for (const [index, spender] of channels.entries()) {
    const amount = AMOUNT * BigInt(Math.ceil((total - index) / channels.length))
    const delegation = await buildDelegation(network, employer, { spender, amount, liveUntilLedger, opening })
    await sendAndWait(network, delegation.signedXdr)
    opening = delegation.next
  }
  return channels.map((channel) => ({ channel, liveUntilLedger }))
}
