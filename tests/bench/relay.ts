import { Keypair } from '@stellar/stellar-sdk'
import { type PresentedJob, readJob, startJob } from '#lib/relay/job.ts'
import type { RunningService } from '#lib/server/start.ts'
import { lookUp } from '#lib/stellar/transaction.ts'
import { startCountingGate } from './counting-gate.ts'
import { startCountingProxy } from './counting-proxy.ts'
import type { Figure } from './directory.ts'
import { type Host, onLedger, span, startHost } from './relay-stage.ts'

const CHANNELS = 10
/** How many channels a relay has whose requests for one line are counted. */
const QUIET_CHANNELS = 12
const WINDOW_SECONDS = 10
const TRANSFERS = 10
const JOBS = 50
const EACH = 3

/**
 * The relay: how many ledgers a job takes with a number of channels, how many requests it makes, and the gain from a
 * second host.
 */
export async function measureRelay(databaseUrl: string): Promise<Figure[]> {
  return await onLedger(
    databaseUrl,
    { proofs: 'stand-in', closeMs: 1000, channels: QUIET_CHANNELS },
    async ({ service, variables }) => {
      const seeds = variables.CHANNEL_SEEDS.split(',')
      const withChannels = (count: number) => ({ ...variables, CHANNEL_SEEDS: seeds.slice(0, count).join() })
      const figures: Figure[] = []
      for (const channels of [1, 5, CHANNELS]) {
        figures.push(await measureJob(service, channels, withChannels(channels)))
      }
      figures.push(await measureQuestions(service, variables))
      return [...figures, ...(await measureHosts(service, withChannels(CHANNELS)))]
    },
  )
}

/** Measures the relay with real proofs. */
export async function measureProvingRelay(databaseUrl: string): Promise<Figure> {
  return await onLedger(databaseUrl, { proofs: 'real', closeMs: 5000, channels: 2 }, ({ service, variables }) =>
    measureProvingAhead(service, { ...variables, CHANNEL_SEEDS: variables.CHANNEL_SEEDS.split(',')[0] ?? '' }),
  )
}

/** Lines of a job whose proofs are real, on ledgers as far apart as those of testnet. */
const PROVED = 5

/** Measures whether proving adds ledgers to a job when one channel pays its lines one at a time. */
async function measureProvingAhead(service: RunningService, variables: Record<string, string>): Promise<Figure> {
  const host = await startHost(variables)
  try {
    await finish(service, await hand(service, 1))
    const job = await finish(service, await hand(service, PROVED))
    const ledgers = await ledgersOf(service, job)
    return {
      name: `a job of ${PROVED} with 1 channel, real proofs, 5 s ledgers`,
      found: job.error ?? `${span(ledgers)} ledgers, ${ledgers.length} transfers`,
      goal: `${PROVED + 1} ledgers`,
    }
  } finally {
    await host.stop()
  }
}

async function ledgersOf(service: RunningService, { results }: PresentedJob): Promise<number[]> {
  const paid = results.filter(({ status }) => status === 'SUCCESS')
  const found = await Promise.all(paid.map(({ hash }) => lookUp(service.network, hash)))
  return found.flatMap((one) => (one.status === 'SUCCESS' ? [one.ledger] : []))
}

async function measureJob(
  service: RunningService,
  channels: number,
  variables: Record<string, string>,
): Promise<Figure> {
  const host = await startHost(variables)
  try {
    // The first job reads the channels' balances from the ledger's events, which happens only once.
    await finish(service, await hand(service, CHANNELS))
    const ledgers = await ledgersOf(service, await finish(service, await hand(service, TRANSFERS)))
    return {
      name: `a job of ${TRANSFERS} with ${channels} channel${channels === 1 ? '' : 's'}`,
      found: `${span(ledgers)} ledgers, ${ledgers.length} transfers`,
      goal: `${Math.ceil(TRANSFERS / channels) + 1} ledgers`,
    }
  } finally {
    await host.stop()
  }
}

/** The requests of a relay to the database and the ledger while it pays one line, over all channels. */
async function measureQuestions(service: RunningService, variables: Record<string, string>): Promise<Figure> {
  const proxy = await startCountingProxy(variables.STELLAR_RPC_URL ?? '')
  const gate = await startCountingGate(variables.DATABASE_URL ?? '')
  const host = await startHost({ ...variables, STELLAR_RPC_URL: proxy.url, DATABASE_URL: gate.url })
  try {
    // The balances of all channels are read from the ledger's events first.
    await finish(service, await hand(service, CHANNELS))
    proxy.reset()
    gate.reset()
    const [job] = await Promise.all([
      hand(service, 1).then((handed) => finish(service, handed)),
      new Promise((resolve) => setTimeout(resolve, WINDOW_SECONDS * 1000)),
    ])
    const [calls, statements] = [proxy.count() / WINDOW_SECONDS, gate.count() / WINDOW_SECONDS]
    return {
      name: `${QUIET_CHANNELS} channels and one line (${job.status})`,
      found: `${calls.toFixed(1)} RPC and ${statements.toFixed(1)} SQL questions a second`,
      goal: 'at most 3 and 20',
    }
  } finally {
    await host.stop()
    await gate.close()
    await proxy.close()
  }
}

async function measureHosts(service: RunningService, variables: Record<string, string>): Promise<Figure[]> {
  const one = await runJobs(service, [await startHost(variables)])
  const two = await runJobs(service, await Promise.all([startHost(variables), startHost(variables)]))
  const name = `${JOBS} jobs of ${EACH}, ${CHANNELS} channels`
  return [
    {
      name: `${name}, two hosts`,
      found: `${two.paid.join(' + ')} payments recorded, ${two.succeeded} of ${JOBS * EACH} lines paid`,
      goal: 'every line once, both hosts pay',
    },
    {
      name: `${name}: throughput`,
      found: `one host ${one.rate.toFixed(1)}, two hosts ${two.rate.toFixed(1)} transfers per second`,
      goal: 'reported',
    },
  ]
}

async function runJobs(
  service: RunningService,
  hosts: Host[],
): Promise<{ rate: number; succeeded: number; paid: number[] }> {
  try {
    const start = performance.now()
    const handed = await Promise.all(Array.from({ length: JOBS }, () => hand(service, EACH)))
    const jobs = await Promise.all(handed.map((job) => finish(service, job)))
    const seconds = (performance.now() - start) / 1000
    const hashes = jobs.flatMap(({ results }) =>
      results.flatMap(({ hash, status }) => (status === 'SUCCESS' ? [hash] : [])),
    )
    const succeeded = new Set(hashes).size
    return { rate: succeeded / seconds, succeeded, paid: hosts.map(({ paid }) => paid()) }
  } finally {
    await Promise.all(hosts.map(({ stop }) => stop()))
  }
}

interface Handed {
  id: string
  identity: { kind: 'ledger'; sub: string }
}

/** Starts a job of a new user. Without contractors it pays other channels. */
async function hand(service: RunningService, transfers: number): Promise<Handed> {
  const { batch, database } = service
  if (!batch) throw new Error('batches are off')
  const identity = { kind: 'ledger', sub: Keypair.random().publicKey() } as const
  const client = { identity, organisation: undefined }
  const amounts = Array.from({ length: transfers }, (_, index) => index + 1)
  const { jobId } = await startJob({ db: await database(), batch, user: client, now: new Date() }, { amounts })
  return { id: jobId, identity }
}

async function finish(service: RunningService, { id, identity }: Handed): Promise<PresentedJob> {
  for (;;) {
    const job = await readJob({ db: await service.database(), session: identity }, id)
    if (job.status !== 'running') return job
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
