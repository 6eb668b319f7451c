import { setTimeout } from 'node:timers/promises'
import { Address, type Keypair } from '@stellar/stellar-sdk'
import { ingest } from '#lib/archive/ingest.ts'
import { openLocalArchive } from '#lib/archive/local.ts'
import { ConfigurationError } from '#lib/config/environment.ts'
import type { PrivateRelayKey } from '#lib/config/relay-key.ts'
import type { Database } from '#lib/db/connection.ts'
import { DELEGATION_CIRCUITS } from '#lib/prover/circuits.ts'
import { requireSameKeys } from '#lib/prover/node/network-keys.ts'
import { ProverError } from '#lib/prover/prover-error.ts'
import type { ReadAccount } from '#lib/stellar/account.ts'
import { readInstance, settingOf } from '#lib/stellar/asset.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import type { Network } from '#lib/stellar/network.ts'
import { LAG, type LedgerView } from '#lib/stellar/view.ts'
import type { Sponsor } from '#lib/transfers/sponsor.ts'
import { openHttpArchive } from '#lib/wallet/archive.ts'
import type { Deployment } from '#lib/wallet/deployment.ts'
import { type Holder, openHolder } from '#lib/wallet/keys.ts'
import type { Prover } from '#lib/wallet/prover.ts'
import type { Allowance } from '#lib/wallet/spending.ts'
import { VALIDITY_SECONDS } from '#lib/wallet/transaction.ts'
import { findForeignCircuit } from '#lib/wallet/verification-keys.ts'
import type { TokenEvent } from './channel-events.ts'
import { openLedgerAccounts } from './ledger-accounts.ts'
import { openPartyKeys, type PartyKeyCache } from './party-keys.ts'
import { openProgress, type ShowProgress } from './progress.ts'

/** The part of a relay's context that every process of the service has, with or without the relay's keys. */
export interface RelayStore {
  database(): Promise<Database>
  /** the confidential token, C… */
  token: string
  now: () => Date
}

/** The context of a relay. Any number of relays may share a database, a private key, and channels. */
export interface Relay extends RelayStore {
  network: Network
  ledger: LedgerView
  /** @throws LedgerError `unavailable` until the ledger has responded once */
  deployment(): Promise<Deployment>
  /** Why it cannot prove payments from a delegation; null if it can. @throws LedgerError as `deployment` */
  runProblem(): Promise<string | null>
  /** Resolves if the service's archive has every ledger that all nodes show by now. @throws LedgerError `unavailable` if not */
  archived(): Promise<void>
  sponsor: Sponsor
  key: PrivateRelayKey
  /** thumbprint (RFC 7638) of that key, which the amounts are sealed to */
  relayKey: string
  /** the accounts that pay, whose seeds this relay has */
  channels: readonly Channel[]
  times: RelayTimes
  showProgress: ShowProgress
  memory: RelayMemory
  /** aborted when the relay closes */
  signal: AbortSignal
}

/**
 * What this process remembers of the ledger to save requests. No payment relies on it alone: a payment is simulated on the ledger
 * before it is sent, and fails there if something has changed.
 */
interface RelayMemory {
  keys: PartyKeyCache
  /** reads accounts for a payment; the payments that begin in the same ledger share a call */
  readAccount: ReadAccount
  /** the last payment that each channel made from an escrow: the rest of the escrow once it is applied */
  lastPayments: Map<string, { allowance: Allowance; sequenceNumber: bigint; liveUntil: number }>
  /** mark keys by channel address: of this host's channels, and of those whose hosts share the relays' key */
  markKeys: Map<string, Uint8Array>
  /** what this process has seen of the channels' payments on the ledger */
  pastPayments: {
    /** by hash */
    payments: Map<string, TokenEvent>
    /** up to this ledger */
    through: number
    /** when that was read for the lines of a job (`performance.now()`) */
    readAt: Map<string, number>
    /** the reading in progress */
    reading: Promise<void> | undefined
  }
}

/** The relay's intervals, in seconds. */
export const RELAY_TIMES = {
  /** how long a signed transfer can be applied, and so how long a line waits for the outcome of a lost one */
  validity: VALIDITY_SECONDS,
  /** after a stop until nothing signed before it can be applied: the database's clock may be a minute behind the ledger's */
  drain: VALIDITY_SECONDS + 60,
  /** before a step that has not succeeded is tried again */
  retry: 1,
  /** how long a lease lasts if it is not renewed: its host has died */
  lease: 30,
  /** after which a host that makes no progress leaves its line to the others, which may see more of the ledger */
  longestLease: 120,
  /** for which a host that gets no further leaves a channel alone, and before a payout that another transfer may pay is tried again */
  rest: 5,
  /** before a doubted line is tried again, if no node can lag behind the response that put it in doubt */
  lag: 30,
  /** between two rounds that announce and check the channels */
  chores: 20,
  /** after which a channel's events are read even if it has nothing to pay: an RPC keeps them for days */
  refresh: 43_200,
  /** between two checks for lines that are due again; new ones reach a host at once, unless a pooler swallows notifications */
  poll: 2,
}
export type RelayTimes = typeof RELAY_TIMES

/** An account that pays. */
export type Channel = Holder

/** Composes a relay. Sends no request to the ledger or the database yet. */
export function openRelay(
  given: Pick<Relay, 'network' | 'token' | 'database' | 'sponsor' | 'key' | 'relayKey' | 'signal' | 'now'> & {
    prover: Prover
    /** the keys of the accounts that pay */
    signers: readonly Keypair[]
    /** further archives of the token's events, in addition to the service's archive */
    archiveUrls: readonly string[]
    times?: Partial<RelayTimes>
  },
): Relay {
  const { prover, signers, archiveUrls, times, ...own } = given
  const { network, token, sponsor } = own
  const { view: ledger } = network
  const deployed = { rpc: network.server, passphrase: network.passphrase, token }
  const channels = signers.map((signer) => openHolder(signer, token))
  const addresses = channels.map(({ address }) => address)
  const guarded = hideMessages(prover)
  const ownArchive = openLocalArchive({ ...own, ingest: () => ingest(own, { isBrief: true }) })
  const deployment = readOnce(async () => ({
    ...(await readDeployment(deployed, guarded)),
    now: ledger.now,
    maxResourceFee: sponsor.rules.maxFee,
    // The RPC drops events after a week: a relay that pauses for longer reads its balances from here.
    archives: [ownArchive, ...archiveUrls.map((url) => openHttpArchive(url, token))],
  }))
  return {
    ...own,
    ledger,
    // A host's clock may be minutes off: time bounds are checked by the clock that they were made by.
    sponsor: { ...sponsor, now: () => new Date(ledger.now()) },
    channels,
    times: { ...RELAY_TIMES, ...times },
    showProgress: openProgress(),
    archived: async () => {
      const latest = ledger.isCurrent() ? ledger.latestLedger() : await ledger.readLatest()
      await ownArchive.reach(latest - LAG)
    },
    runProblem: readOnce(() => findRunProblem(deployed, guarded)),
    deployment,
    memory: {
      keys: openPartyKeys(deployment),
      readAccount: openLedgerAccounts(sponsor.tracker, addresses),
      lastPayments: new Map(),
      markKeys: new Map(),
      pastPayments: { payments: new Map(), through: 0, readAt: new Map(), reading: undefined },
    },
  }
}

/** Reads the value when it is first needed, and caches it unless reading it fails. */
export function readOnce<Value>(read: () => Promise<Value>): () => Promise<Value> {
  let value: Promise<Value> | undefined
  return () => {
    value ??= read().catch((error: unknown) => {
      value = undefined
      throw error
    })
    return value
  }
}

/** A prover has access to the amounts, and an unexpected error's message may contain them: only its name is logged. */
function hideMessages(prover: Prover): Prover {
  return {
    ...prover,
    prove: (statement) =>
      prover.prove(statement).catch((error: unknown) => {
        if (error instanceof ProverError) throw error
        throw new Error(`the prover failed: ${error instanceof Error ? error.name : typeof error}`)
      }),
  }
}

/** Reads the token's settings. @throws ConfigurationError if its verifier would accept no proof of this prover; LedgerError */
async function readDeployment(deployed: Deployed, prover: Prover): Promise<Deployment> {
  const instance = await readInstance(deployed.rpc, deployed.token)
  const auditor = settingOf(instance, 'Auditor')
  if (auditor?.type !== 'scvAddress') {
    const problem = 'the configured contract is not a confidential token: it names no registry of auditors'
    throw new LedgerError('foreign-contract', problem)
  }
  if (prover.verificationKeys) await requireSameKeys(deployed, verifierOf(instance), prover)
  return { ...deployed, auditor: Address.fromScVal(auditor).toString(), prover }
}

/** A token on a network. */
type Deployed = Pick<Deployment, 'rpc' | 'passphrase' | 'token'>

function verifierOf(instance: Awaited<ReturnType<typeof readInstance>>): string {
  const verifier = settingOf(instance, 'Verifier')
  if (verifier?.type === 'scvAddress') return Address.fromScVal(verifier).toString()
  throw new ConfigurationError('CONFIDENTIAL_TOKEN', 'the contract names no verifier of proofs')
}

/** A folder of circuits, or a network's verifier, may have only the three circuits that delegations do not need. */
async function findRunProblem(deployed: Deployed, prover: Prover): Promise<string | null> {
  const missing = DELEGATION_CIRCUITS.find((circuit) => !prover.verificationKeys?.[circuit])
  if (missing) return `the prover has no circuit ${missing}`
  const verifier = verifierOf(await readInstance(deployed.rpc, deployed.token))
  const foreign = await findForeignCircuit(deployed, verifier, prover, DELEGATION_CIRCUITS)
  return foreign ? `the network's verifier has another key, or none, for the circuit ${foreign.circuit}` : null
}

/** Resolves to true after `seconds`, or to false as soon as the relay ends. */
export const rest = ({ signal }: Relay, seconds: number): Promise<boolean> =>
  setTimeout(seconds * 1000, true, { signal }).catch(() => false)

/** Repeats `attempt` every `seconds` until it succeeds. Resolves to undefined once the relay ends. */
export async function keepTrying<Result>(
  relay: Relay,
  seconds: number,
  attempt: () => Promise<Result>,
  onFailure: (error: unknown) => void,
): Promise<Result | undefined> {
  do {
    try {
      return await attempt()
    } catch (error) {
      if (!relay.signal.aborted) onFailure(error)
    }
  } while (await rest(relay, seconds))
  return undefined
}
