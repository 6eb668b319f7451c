import { Address, type Keypair } from '@stellar/stellar-sdk'
import { eq } from 'drizzle-orm'
import { batchItems } from '#drizzle/schema/relay.ts'
import { ingest } from '#lib/archive/ingest.ts'
import { openLocalArchive } from '#lib/archive/local.ts'
import { ConfigurationError } from '#lib/config/environment.ts'
import type { PrivateRelayKey } from '#lib/config/relay-key.ts'
import type { Database } from '#lib/db/connection.ts'
import { log } from '#lib/observability/log.ts'
import { ProverFault } from '#lib/prover/circuits.ts'
import { requireSameKeys } from '#lib/prover/node/network-keys.ts'
import { readInstance, settingOf } from '#lib/stellar/asset.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import type { Network } from '#lib/stellar/network.ts'
import type { Sponsor } from '#lib/transfers/sponsor.ts'
import type { Deployment } from '#lib/wallet/deployment.ts'
import { type Holder, openHolder } from '#lib/wallet/keys.ts'
import type { Prover } from '#lib/wallet/prover.ts'
import type { ItemQueue } from './queue.ts'
import type { ItemId } from './sealing.ts'

/** The context of a relay. Any number of relays may share a database, a private key, and channels. */
export interface Relay {
  network: Network
  /** the confidential token, C… */
  token: string
  /** @throws LedgerError `unavailable` until the ledger has been asked once */
  deployment(): Promise<Deployment>
  database(): Promise<Database>
  sponsor: Sponsor
  key: PrivateRelayKey
  /** the messages of the items that are sealed to this key */
  queue: ItemQueue
  /** the accounts that pay, of which this relay has the seeds */
  channels: readonly Channel[]
  times: RelayTimes
  showProgress: ShowProgress
  /** aborted when the relay closes */
  signal: AbortSignal
  now: () => Date
}

/** The relay's intervals, in seconds. */
export interface RelayTimes {
  /**
   * how long a signed transfer can apply, and so how long an item waits for the end of one that was lost. A transfer
   * that finds no room in the network's queue is banned for ten ledgers, about a minute, so it has to outlast one or
   * two bans.
   */
  validity: number
  /** before a step that has not succeeded is tried again */
  retry: number
  /** after which a worker that gets nowhere leaves its item to the other workers, which may see more of the ledger */
  patience: number
  /** before an item for which no channel was free is tried again, unless a channel becomes free earlier */
  rest: number
  /** before an item that the ledger has spoken against is tried again, if no node can lag behind that answer then */
  lag: number
  /** between two rounds that announce and check the channels */
  chores: number
  /** after which a channel's events are read though it has nothing to pay: an RPC keeps them for days */
  refresh: number
  /** between two polls of the queue for messages that are due again; new messages reach a worker at once */
  poll: number
  /** between two checks for messages whose workers have died */
  supervise: number
}

export const RELAY_TIMES: RelayTimes = {
  validity: 180,
  retry: 1,
  patience: 30,
  rest: 5,
  lag: 30,
  chores: 20,
  refresh: 43_200,
  poll: 5,
  supervise: 5,
}

/** An account that pays. */
export type Channel = Holder

/** Puts a relay together. Asks neither ledger nor database yet. */
export function openRelay(
  given: Omit<Relay, 'deployment' | 'channels' | 'times' | 'showProgress'> & {
    prover: Prover
    /** the keys of the accounts that pay */
    signers: readonly Keypair[]
    times?: Partial<RelayTimes>
  },
): Relay {
  const { prover, signers, times, ...rest } = given
  return {
    ...rest,
    channels: signers.map((signer) => openHolder(signer, rest.token)),
    times: { ...RELAY_TIMES, ...times },
    showProgress: openProgress(),
    deployment: askOnce(async () => ({
      ...(await readDeployment(rest.network, rest.token, discreet(prover))),
      // The RPC drops events after a week: a relay that pauses for longer reads its balances from here.
      archives: [openLocalArchive({ ...rest, ingest: () => ingest(rest) })],
    })),
  }
}

/** Asks when the answer is first needed, and keeps it; a failure is not kept. */
export function askOnce<Answer>(ask: () => Promise<Answer>): () => Promise<Answer> {
  let known: Promise<Answer> | undefined
  return () => {
    known ??= ask().catch((error: unknown) => {
      known = undefined
      throw error
    })
    return known
  }
}

/**
 * A prover knows the amounts, and an unknown error's message may contain them: only the name of such an error is
 * logged.
 */
function discreet(prover: Prover): Prover {
  return {
    ...prover,
    prove: (statement) =>
      prover.prove(statement).catch((error: unknown) => {
        if (error instanceof ProverFault) throw error
        throw new Error(`the prover failed: ${error instanceof Error ? error.name : typeof error}`)
      }),
  }
}

/**
 * Reads the token's registry of auditors and its verifier from the token's instance storage.
 * @throws ConfigurationError if the verifier would accept no proof of this prover; LedgerError
 */
async function readDeployment(network: Network, token: string, prover: Prover): Promise<Deployment> {
  const instance = await readInstance(network.server, token)
  const auditor = settingOf(instance, 'Auditor')
  if (auditor?.type !== 'scvAddress') {
    throw new LedgerError(
      'foreign-contract',
      'the configured contract is no confidential token: it names no registry of auditors',
    )
  }
  const deployed = { rpc: network.server, passphrase: network.passphrase, token }
  if (prover.verificationKeys) {
    const verifier = settingOf(instance, 'Verifier')
    if (verifier?.type !== 'scvAddress') {
      throw new ConfigurationError('CONFIDENTIAL_TOKEN', 'the contract names no verifier of proofs')
    }
    await requireSameKeys(deployed, Address.fromScVal(verifier).toString(), prover)
  }
  return { ...deployed, auditor: Address.fromScVal(auditor).toString(), prover }
}

/** Runs `work`, which proves an item's transfer. Logs which of how many it is, and how long the rest may take. */
type ShowProgress = <Result>(db: Database, item: ItemId, work: () => Promise<Result>) => Promise<Result>

/** For how many jobs the transfers that have begun are remembered. */
const REMEMBERED_JOBS = 100

/**
 * Counts transfers as this process begins to prove them. The estimate is a mean of proof times in which the newest
 * weighs as much as all earlier ones together.
 */
function openProgress(): ShowProgress {
  const begun = new Map<string, Set<number>>()
  let mean: number | undefined
  let ended = 0
  return async (db, { job, position }, work) => {
    const total = await db.$count(batchItems, eq(batchItems.job, job))
    const positions = (begun.get(job) ?? new Set()).add(position)
    begun.set(job, positions)
    const [oldest] = begun.keys()
    if (begun.size > REMEMBERED_JOBS && oldest !== undefined) begun.delete(oldest)
    const left = total - positions.size + 1
    log('info', 'proving', {
      job,
      item: position,
      progress: `proving ${positions.size} of ${total}`,
      left: mean === undefined ? undefined : `about ${Math.ceil((mean * left) / 1000)} s left`,
    })
    const began = performance.now()
    const result = await work()
    // Proofs are made one after the other: the time spent waiting for an earlier proof counts towards that proof.
    const now = performance.now()
    const took = now - Math.max(began, ended)
    ended = now
    mean = mean === undefined ? took : (mean + took) / 2
    return result
  }
}
