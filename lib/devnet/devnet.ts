import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { lockDirectory, OtherVersion } from '#lib/config/data-directory.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { CIRCUIT_NAMES } from '#lib/prover/circuits.ts'
import { CIRCUIT_TYPES } from '#lib/wallet/statement.ts'
import { type Deployment, makeGenesis } from './apply/genesis.ts'
import type { Protocol } from './apply/header.ts'
import { type DevnetKeys, devnetKeys } from './apply/keys.ts'
import { type Ledger, openLedger } from './apply/ledger.ts'
import { instanceKey } from './host/entry-key.ts'
import { openProofs, type ProofMode, type Proofs } from './host/proofs.ts'
import { findVerificationKey } from './host/verifier-registry.ts'
import { type CaptiveCoreOptions, openCaptiveCore } from './rpc/captive-core.ts'
import { lagBehind } from './rpc/lagging-node.ts'
import { rpcMethods } from './rpc/methods.ts'
import { openFriendbot } from './services/friendbot.ts'
import { answerRequests } from './services/http-server.ts'
import { readNetworkFile, writeAuditorFile, writeNetworkFile } from './services/network-file.ts'
import type { LedgerContext } from './state/ledger-context.ts'
import { type LedgerLimits, NETWORK_LEDGER_LIMITS } from './transaction/ledger-room.ts'

export { devnetKeys } from './apply/keys.ts'
export type { ProofMode } from './host/proofs.ts'
export { generateIdentityKey, identityIssuer } from './services/identity.ts'
export { type LedgerLimits, multiplyLimits, NETWORK_LEDGER_LIMITS } from './transaction/ledger-room.ts'

const HISTORY_LEDGERS = 17_280

/**
 * The version of what a directory holds: the tables, the JSON in them, and the entries of the first ledger. A change
 * to any of them increases it, and comes with a migration of older directories.
 */
const STATE_VERSION = 1

/** Milliseconds between ledgers. */
const PROFILES = { quick: 1_000, testnet: 5_000 } as const

export interface DevnetOptions {
  /** the folder of the ledger, used only by this process; null keeps it in memory */
  readonly directory: string | null
  /** 0 picks any free port */
  readonly port: number
  /** how often ledgers close; limits and fees are testnet's in either profile */
  readonly profile?: keyof typeof PROFILES
  /** milliseconds between ledgers, overriding the profile's; 0 closes one only when `closeLedger` is called */
  readonly closeMs?: number
  /** by how many ledgers each node lags; requests are sent to the nodes in turn; by default, one node that doesn't lag */
  readonly lag?: readonly number[]
  /**
   * Separates the RPC's own node from the validator, for tests of transactions that never reach the validator: the loss
   * for an announcement of the transaction `hash` (hex; the outer hash of a fee bump). `attempt` counts from 1.
   */
  readonly loses?: CaptiveCoreOptions['loses']
  readonly passphrase: string
  /** the protocol number and the form of ledger headers, 28 by default */
  readonly protocol?: Protocol
  /** the proofs that the verifier accepts; stand-ins by default */
  readonly proofs?: ProofMode
  /** how many ledgers clients can query; 17,280 by default, which is a day of testnet */
  readonly historyLedgers?: number
  /** the limits of a ledger; testnet's by default */
  readonly limits?: LedgerLimits
  /** the archive's URL in the deployment document, without `/v1` */
  readonly archiveUrl?: string
  /** the relay in the deployment document: the key for amounts, a JWK, and the addresses of its channels */
  readonly relay?: { publicKey: object; channels: readonly string[] }
  /** handles requests below /idp */
  readonly identity?: (request: IncomingMessage, response: ServerResponse) => void
  /** overrides keys that are otherwise derived from the passphrase */
  readonly keys?: Partial<DevnetKeys>
  /** unix milliseconds */
  readonly now?: () => number
}

export interface Devnet {
  /** `http://localhost:<port>` */
  readonly url: string
  readonly rpcUrl: string
  readonly friendbotUrl: string
  /** the document at /deployment.json */
  readonly deployment: Deployment & {
    readonly network: 'local'
    readonly rpcUrl: string
    readonly friendbotUrl: string
    readonly passphrase: string
  }
  /** secret of the issuer of the test USDC (S…) */
  readonly issuerSecret: string
  closeLedger(): void
  close(): Promise<void>
}

/**
 * Longer than clients keep idle connections, so that the server never drops one just as it is used. Connections must
 * also survive the seconds for which opening PGlite blocks this process.
 */
const KEEP_ALIVE_MS = 65_000

/**
 * Starts an embedded Stellar network of one node, on the loopback address.
 * @throws DirectoryInUse, OtherVersion; an error that names the port that is in use, or the directory of another
 * network
 */
export async function startDevnet(options: DevnetOptions): Promise<Devnet> {
  const { directory, passphrase, identity, archiveUrl, relay, lag = [0] } = options
  const closeMs = options.closeMs ?? PROFILES[options.profile ?? 'quick']
  const keys = { ...devnetKeys(passphrase), ...options.keys }
  const server = createServer()
  const release = directory === null ? () => {} : lockDirectory(directory)
  try {
    const proofs = await openProofs(options.proofs ?? 'stand-in')
    // No await between here and the request listener: a request that arrives in between would never be answered.
    const url = `http://localhost:${await listen(server, options.port)}`
    const { ledger, deployment: built } = openNetwork({ ...options, closeMs, memory: Math.max(...lag) }, keys, proofs)
    if (directory !== null) writeAuditorFile(directory, keys.auditor)
    const rpcUrl = `${url}/rpc`
    const friendbotUrl = `${url}/friendbot`
    const service = { ...(archiveUrl && { archiveUrl }), ...(relay && { relay }) }
    const deployment = { network: 'local' as const, rpcUrl, friendbotUrl, passphrase, ...built, ...service }
    const { loses, limits = NETWORK_LEDGER_LIMITS } = options
    const core = loses ? openCaptiveCore(ledger, { limits, loses }) : ledger
    const nodes = lag.map((ledgers) => rpcMethods(ledgers > 0 ? lagBehind(core, ledgers) : core, friendbotUrl))
    let turn = 0
    const nextNode = () => {
      turn = (turn + 1) % nodes.length
      return nodes[turn] ?? {}
    }
    const friendbot = openFriendbot(ledger, keys.root)
    server.on(
      'request',
      answerRequests({ nextNode, ready: proofs.ready, friendbot, deployment, ...(identity ? { identity } : {}) }),
    )
    const stop = closePeriodically(core, closeMs)
    return {
      url,
      rpcUrl,
      friendbotUrl,
      deployment,
      issuerSecret: keys.issuer.secret(),
      closeLedger: () => void core.close(),
      close: async () => {
        stop()
        await shut(server)
        ledger.stop()
        release()
      },
    }
  } catch (cause) {
    await shut(server)
    release()
    throw cause
  }
}

/** Opens the network in the directory, or creates one. @throws OtherVersion */
function openNetwork(options: DevnetOptions & { closeMs: number; memory: number }, keys: DevnetKeys, proofs: Proofs) {
  const { directory, passphrase, closeMs, memory, limits = NETWORK_LEDGER_LIMITS, now = Date.now } = options
  const { historyLedgers = HISTORY_LEDGERS, protocol } = options
  const existing = directory === null ? undefined : readNetworkFile(directory)
  if (existing && existing.passphrase !== passphrase) {
    throw new Error(`the network in ${directory} has another passphrase (DEVNET_PASSPHRASE): "${existing.passphrase}"`)
  }
  if (existing) requireVersion(existing.version, directory)
  let deployment = existing?.deployment
  const genesis = (context: LedgerContext) => {
    const created = makeGenesis(context, keys, proofs.keys)
    deployment = created.deployment
    if (directory !== null) writeNetworkFile(directory, { passphrase, deployment, version: STATE_VERSION })
    return created.entries
  }
  const settings = { directory, passphrase, protocol, limits, closeMs, historyLedgers, memory, now, genesis }
  const ledger = openLedger({ ...settings, verify: proofs.verify })
  try {
    if (!deployment) throw new Error(`${directory} contains ledgers but no network.json`)
    if (!holdsKeys(ledger, deployment, proofs)) {
      throw new Error(
        `the network in ${directory} was created with other circuits or another DEVNET_PROOFS: set it as before, or start anew by removing DATA_DIR with the database in it`,
      )
    }
    return { ledger, deployment }
  } catch (cause) {
    ledger.stop()
    throw cause
  }
}

/** @throws OtherVersion */
function requireVersion(version: unknown, directory: string | null): void {
  if (version === STATE_VERSION) return
  if (typeof version === 'number' && version > STATE_VERSION) {
    throw new OtherVersion(`a newer version of this service wrote the ledger in ${directory}: start that version`)
  }
  throw new OtherVersion(
    `the ledger in ${directory} is older than release 1.0.0: to start anew, remove DATA_DIR with the database in it`,
  )
}

/** Whether the network's verifier has the verification keys of these proofs. */
function holdsKeys({ state }: Ledger, { contracts }: Deployment, { keys }: Proofs): boolean {
  const verifier = state.get(instanceKey(contracts.verifier).id)?.data
  return CIRCUIT_NAMES.every((name) => {
    const [stored, own] = [findVerificationKey(verifier, CIRCUIT_TYPES[name]), keys[name]]
    return stored && own ? Buffer.compare(stored, own) === 0 : stored === own
  })
}

/** Closes a ledger every `closeMs`, and one immediately, so that a network that was down becomes healthy again. */
function closePeriodically(ledger: Ledger, closeMs: number): () => void {
  if (closeMs === 0) return () => {}
  const close = () => {
    try {
      ledger.close()
    } catch (cause) {
      log('error', 'ledger close', { failure: describeFailure(cause) })
    }
  }
  close()
  const timer = setInterval(close, closeMs)
  return () => clearInterval(timer)
}

async function listen(server: Server, port: number): Promise<number> {
  server.keepAliveTimeout = KEEP_ALIVE_MS
  server.listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch (cause) {
    throw new Error(`the embedded ledger cannot listen on port ${port} (DEVNET_PORT)`, { cause })
  }
  const address = server.address()
  if (typeof address !== 'object' || !address) throw new Error('the embedded ledger listens on no port')
  return address.port
}

async function shut(server: Server): Promise<void> {
  if (!server.listening) return
  const closed = once(server, 'close')
  server.close()
  server.closeAllConnections()
  await closed
}
