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
  /** thumbprint (RFC 7638) of the key that the amounts are sealed to */
  relayKey: string
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
  /**
   * Why it cannot prove payments from a delegation; null if it can.
   * @throws LedgerError `unavailable` until the ledger has responded once
   */
  runProblem(): Promise<string | null>
  /**
   * Resolves if the archive of the service includes every ledger that all nodes show by now, and that closed a minute ago.
   * @throws LedgerError `unavailable` until it does
   */
  archived(): Promise<void>
  sponsor: Sponsor
  key: PrivateRelayKey
  /** the accounts that pay, whose seeds this relay has */
  channels: readonly Channel[]
  times: RelayTimes
  showProgress: ShowProgress
  memory: RelayMemory
  /** aborted when the relay closes */
  signal: AbortSignal
}

/**
 * The state of the ledger that this process remembers to save requests. No payment relies on it alone: a payment is
 * simulated on the ledger before it is sent, and fails there if something has changed.
 */
interface RelayMemory {
  keys: PartyKeyCache
  /** reads accounts for a payment; the payments that begin in the same ledger share a call */
  readAccount: ReadAccount
  /** the last payment that each channel made from an escrow: the rest of the escrow once it is applied */
  lastPayments: Map<string, { allowance: Allowance; sequenceNumber: bigint; liveUntilLedger: number }>
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
export interface RelayTimes {
  /** how long a signed transfer can be applied, and so how long a line waits for the outcome of a lost one */
  validity: number
  /** after a stop until nothing that was signed before it can be applied any more */
  drain: number
  /** before a step that has not succeeded is tried again */
  retry: number
  /** how long a lease lasts if it is not renewed: its host has died */
  lease: number
  /** after which a host that makes no progress leaves its line to the others, which may see more of the ledger */
  longestLease: number
  /** for which a host that gets no further leaves a channel alone, and before a payout that another transfer may pay is tried again */
  rest: number
  /** before a doubted line is tried again, if no node can lag behind the response that put it in doubt */
  lag: number
  /** between two rounds that announce and check the channels */
  chores: number
  /** after which a channel's events are read even if it has nothing to pay: an RPC keeps them for days */
  refresh: number
  /** between two checks for lines that are due again; new ones reach a host at once, unless a pooler swallows notifications */
  poll: number
}

export const RELAY_TIMES: RelayTimes = {
  validity: VALIDITY_SECONDS,
  // The database's clock, by which a stop begins, may be a minute behind the ledger's.
  drain: VALIDITY_SECONDS + 60,
  retry: 1,
  lease: 30,
  longestLease: 120,
  rest: 5,
  lag: 30,
  chores: 20,
  refresh: 43_200,
  poll: 2,
}

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
  const { prover, signers, archiveUrls, times, ...rest } = given
  const { view: ledger } = rest.network
  const guarded = hideMessages(prover)
  const ownArchive = openLocalArchive({ ...rest, ingest: () => ingest(rest) })
  const deployment = readOnce(async () => ({
    ...(await readDeployment(rest.network, rest.token, guarded)),
    now: ledger.now,
    // The RPC drops events after a week: a relay that pauses for longer reads its balances from here.
    archives: [ownArchive, ...archiveUrls.map((url) => openHttpArchive(url, rest.token))],
  }))
  return {
    ...rest,
    ledger,
    // A host's clock may be minutes off: time bounds are checked by the clock that they were made by.
    sponsor: { ...rest.sponsor, now: () => new Date(ledger.now()) },
    channels: signers.map((signer) => openHolder(signer, rest.token)),
    times: { ...RELAY_TIMES, ...times },
    showProgress: openProgress(),
    archived: async () => {
      const latest = ledger.isCurrent() ? ledger.latestLedger() : await ledger.readLatest()
      await ownArchive.reach(latest - Math.max(LAG, ARCHIVED_SECONDS / (ledger.secondsPerLedger() ?? ARCHIVED_SECONDS)))
    },
    runProblem: readOnce(() => findRunProblem(rest.network, rest.token, guarded)),
    deployment,
    memory: {
      keys: openPartyKeys(deployment),
      readAccount: openLedgerAccounts(
        rest.sponsor.tracker,
        signers.map((signer) => signer.publicKey()),
      ),
      lastPayments: new Map(),
      markKeys: new Map(),
      pastPayments: { payments: new Map(), through: 0, readAt: new Map(), reading: undefined },
    },
  }
}

/** How far the archive may be behind before a host ingests by itself: the service does so every half minute. */
const ARCHIVED_SECONDS = 60

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

/**
 * A prover has access to the amounts, and an unexpected error's message may contain them: only the name of such an error
 * is logged.
 */
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
      'the configured contract is not a confidential token: it names no registry of auditors',
    )
  }
  const deployed = { rpc: network.server, passphrase: network.passphrase, token }
  if (prover.verificationKeys) await requireSameKeys(deployed, verifierOf(instance), prover)
  return { ...deployed, auditor: Address.fromScVal(auditor).toString(), prover }
}

function verifierOf(instance: Awaited<ReturnType<typeof readInstance>>): string {
  const verifier = settingOf(instance, 'Verifier')
  if (verifier?.type === 'scvAddress') return Address.fromScVal(verifier).toString()
  throw new ConfigurationError('CONFIDENTIAL_TOKEN', 'the contract names no verifier of proofs')
}

/** A folder of circuits, or a network's verifier, may have only the three circuits that delegations do not need. */
async function findRunProblem(network: Network, token: string, prover: Prover): Promise<string | null> {
  const missing = DELEGATION_CIRCUITS.find((circuit) => !prover.verificationKeys?.[circuit])
  if (missing) return `the prover has no circuit ${missing}`
  const deployed = { rpc: network.server, passphrase: network.passphrase, token }
  const verifier = verifierOf(await readInstance(network.server, token))
  const foreign = await findForeignCircuit(deployed, verifier, prover, DELEGATION_CIRCUITS)
  return foreign ? `the network's verifier has another key, or none, for the circuit ${foreign.circuit}` : null
}
