import { join } from 'node:path'
import { openStore } from './db.ts'
import { lockDirectory } from './directory-lock.ts'
import { type EmbeddedKeys, keepKeys } from './embedded-keys.ts'
import { type Environment, environment } from './env.ts'
import { openNetwork } from './ledger/network.ts'
import { describeFailure, log } from './log.ts'
import { provideService, type Service } from './service.ts'
import { composeSettings, type Embedded } from './settings.ts'
import { openFloat, readAvailableBalance } from './sponsor/float.ts'
import { openSettlement } from './sponsor/settlement.ts'
import type { Sponsor } from './sponsor/transfer.ts'
import { findOpenTransfers } from './sponsor/transfer-record.ts'

/** A service and the way to end it. */
export interface RunningService extends Service {
  close(): Promise<void>
}

/** How long the end of the process waits for what is open. */
const CLOSE_DEADLINE_MS = 3_000

/** Starts the service of this process. Bad configuration ends the process: a half-started server would answer 500. */
export async function boot(): Promise<void> {
  const starting = startService(environment())
  provideService(starting)
  try {
    closeAtExit(await starting)
  } catch (error) {
    log('error', 'boot', { failure: error instanceof Error ? error.message : String(error) })
    if (!(error instanceof Error) || error.name === 'Error') console.error(error)
    process.exit(1)
  }
}

/**
 * Opens everything that `configuration` asks for, the embedded ledger and database included.
 * @throws ConfigurationError, DirectoryInUse
 */
export async function startService(configuration: Environment): Promise<RunningService> {
  const closers: (() => unknown)[] = []
  const close = async () => {
    for (const closer of closers.splice(0).reverse()) await closer()
  }
  try {
    const embedsLedger = configuration.STELLAR_NETWORK === 'local' && !configuration.STELLAR_RPC_URL
    const embedsDatabase = !configuration.DATABASE_URL
    const directory = configuration.DATA_DIR
    let embedded: Embedded = {}
    if (embedsLedger || embedsDatabase) {
      closers.push(lockDirectory(directory))
      const { generateIdentityKey } = await import('./devnet/identity.ts')
      const keys = await keepKeys(directory, generateIdentityKey)
      if (embedsDatabase) embedded.sessionSecret = keys.sessionSecret
      if (embedsLedger) embedded = { ...embedded, ...(await startLedger(configuration, keys, closers)) }
    }
    const settings = composeSettings(configuration, embedded)
    const store = openStore(
      configuration.DATABASE_URL ? { url: configuration.DATABASE_URL } : { directory: join(directory, 'database') },
    )
    closers.push(store.close)
    const network = openNetwork(settings.network)
    const now = () => new Date()
    const sponsor = settings.sponsor && openSponsor({ ...settings.sponsor, network, database: store.database, now })
    if (sponsor) closers.push(sponsor.settlement.stop)
    const service = { settings, network, database: store.database, sponsor, now, close }
    if (embedsLedger && sponsor) await fundSponsor(sponsor, configuration)
    await takeUpOpenTransfers(service)
    return service
  } catch (error) {
    await close()
    throw error
  }
}

function openSponsor(
  given: Pick<Sponsor, 'keypair' | 'rules' | 'limits' | 'patience' | 'network' | 'now'> & Pick<Service, 'database'>,
): Sponsor {
  const { database, ...sponsor } = given
  const { network, now } = given
  const address = given.keypair.publicKey()
  return {
    ...sponsor,
    settlement: openSettlement({ network, database, now }),
    readFloat: openFloat(network, address),
    readBalance: () => readAvailableBalance(network, address),
  }
}

async function startLedger(
  configuration: Environment,
  keys: EmbeddedKeys,
  closers: (() => unknown)[],
): Promise<Embedded> {
  const { startDevnet } = await import('./devnet/devnet.ts')
  const { identityIssuer } = await import('./devnet/identity.ts')
  const audience = 'confidential-payroll'
  const issuer = `http://localhost:${configuration.DEVNET_PORT}/idp`
  const devnet = await startDevnet({
    directory: join(configuration.DATA_DIR, 'ledger'),
    port: configuration.DEVNET_PORT,
    closeMs: configuration.DEVNET_CLOSE_MS,
    passphrase: configuration.DEVNET_PASSPHRASE,
    identity: identityIssuer({ issuer, audience, key: keys.identityKey }),
  })
  closers.push(devnet.close)
  return {
    sponsorSeed: keys.sponsorSeed,
    faucetSeed: devnet.issuerSecret,
    rpcUrl: devnet.rpcUrl,
    token: devnet.deployment.contracts.token,
    provider: { issuer, audience, jwksUrl: `${issuer}/jwks`, algorithms: ['ES256'], emailClaim: 'email' },
  }
}

/** The embedded ledger's friendbot fills the sponsor's account when it is empty. */
async function fundSponsor(sponsor: Sponsor, configuration: Environment): Promise<void> {
  const address = sponsor.keypair.publicKey()
  if ((await sponsor.readBalance()) > 0n) return
  const friendbot = `http://localhost:${configuration.DEVNET_PORT}/friendbot?addr=${address}`
  const answer = await fetch(friendbot, { signal: AbortSignal.timeout(30_000) })
  if (!answer.ok) throw new Error(`friendbot answered ${answer.status} for the sponsor's account`)
}

/**
 * What a process that ended left open is sent and settled by this one. The database may be out of reach: then whoever
 * asks for a transfer first takes it up.
 */
async function takeUpOpenTransfers({ sponsor, database }: Service): Promise<void> {
  if (!sponsor) return
  try {
    for (const record of await findOpenTransfers(await database())) {
      void sponsor.settlement.follow(record, { isNew: false, patience: 0 })
    }
  } catch (error) {
    log('error', 'boot', { failure: describeFailure(error) })
  }
}

/** Next drains its requests at SIGTERM and then calls process.exit: what they use must stay open until then. */
function closeAtExit(running: RunningService): void {
  const exit = process.exit.bind(process)
  let closing = false
  process.exit = ((code?: number) => {
    if (closing) return
    closing = true
    const deadline = setTimeout(() => exit(code), CLOSE_DEADLINE_MS)
    running
      .close()
      .catch((error: unknown) => log('error', 'close', { failure: describeFailure(error) }))
      .finally(() => {
        clearTimeout(deadline)
        exit(code)
      })
  }) as typeof process.exit
}
