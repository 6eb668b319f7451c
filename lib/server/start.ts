import { isForeignNetwork } from '#lib/archive/identity.ts'
import { dataPath, lockDirectory } from '#lib/config/data-directory.ts'
import { type EmbeddedKeys, keepKeys } from '#lib/config/embedded-keys.ts'
import { type Environment, environment, isConfigurationError, isDevelopment, isSet } from '#lib/config/environment.ts'
import { embedsLedger } from '#lib/config/listen-host.ts'
import { readVersion } from '#lib/config/version.ts'
import { openStore, type Store, type StoreLocation } from '#lib/db/connection.ts'
import { startDelivering } from '#lib/events/delivering.ts'
import { openResolver } from '#lib/events/destination.ts'
import { startPublishing } from '#lib/events/publishing.ts'
import { openGranting } from '#lib/faucet/deposit.ts'
import { openVault } from '#lib/faucet/vault.ts'
import { watchClients } from '#lib/http/client-address.ts'
import { installFrontListener, type RouterStateReader } from '#lib/http/front.ts'
import { noteEnding } from '#lib/observability/ending.ts'
import { captureConsole, describeFailure, log, logReadably } from '#lib/observability/log.ts'
import { openComparison } from '#lib/relay/sequence.ts'
import { guardNetwork, openNetwork } from '#lib/stellar/network.ts'
import { openSponsor } from '#lib/transfers/sponsor.ts'
import { openTracker } from '#lib/transfers/track.ts'
import { keyIdOf } from '#lib/wallet/seal.ts'
import { startLedger } from './ledger.ts'
import { CHORES_EVERY_MS, startMaintenance } from './maintenance.ts'
import { startRelay } from './relay.ts'
import { describeRelay } from './relay-document.ts'
import { provideService, type Service } from './services.ts'
import { composeSettings, type Embedded, type Settings } from './settings.ts'
import { fundMeanwhile } from './sponsor-funding.ts'
import { checkSurroundings } from './start-checks.ts'

/** A service and the function that stops it. */
export interface RunningService extends Service {
  close(): Promise<void>
}

/** How long an exiting process waits for the service to close. */
const CLOSE_DEADLINE_MS = 3_000

/**
 * Starts the service of this process. Invalid configuration ends the process: a half-started server would respond 500.
 * Vercel restarts a process immediately without showing why it exited, so there the pages name the problem.
 */
export async function boot(readsRouterState: RouterStateReader): Promise<void> {
  // A closed log must not end the process: each failed write would be another logged failure.
  for (const output of [process.stdout, process.stderr]) output.on('error', () => undefined)
  if (isDevelopment()) logReadably()
  log('info', 'start', { ...readVersion() })
  const starting = (async () => {
    const { PORT, KEEP_ALIVE_TIMEOUT } = environment()
    installFrontListener(PORT, isDevelopment(), KEEP_ALIVE_TIMEOUT, readsRouterState)
    return await startService(environment())
  })()
  provideService(starting)
  try {
    const running = await starting
    closeAtExit(running)
    tellPassword(running.settings)
    // Next's development server prints for people.
    if (!isDevelopment()) captureConsole()
  } catch (error) {
    // A database that fails to open is a Refusal with a short message, so its cause is logged as well.
    const isSelfExplanatory = error instanceof Error && error.cause === undefined
    log('error', 'boot', { failure: isSelfExplanatory ? error.message : describeFailure(error) })
    if (isSet('VERCEL') && isConfigurationError(error)) return
    if (!(error instanceof Error) || error.name === 'Error') console.error(error)
    process.exit(1)
  }
}

/** A generated password is printed once per process, and never logged. */
function tellPassword({ operator, publicUrl }: Settings): void {
  if (operator?.isDerived)
    console.log(`The dashboard is at ${publicUrl}/overview, its password is ${operator.password}`)
}

/**
 * Opens everything that `configuration` requires, including the embedded ledger and database.
 * @param existingStore a database to use instead of the configured one; it stays open when the service closes
 * @param choresEveryMs how often maintenance runs in this process; 0 disables it
 * @throws ConfigurationError, DirectoryInUse
 */
export async function startService(
  configuration: Environment,
  existingStore?: Store,
  choresEveryMs = CHORES_EVERY_MS,
): Promise<RunningService> {
  const closers: (() => unknown)[] = []
  const close = async () => {
    for (const closer of closers.splice(0).reverse()) await closer()
  }
  try {
    closers.push(watchClients(configuration.TRUST_PROXY ?? (configuration.VERCEL ? 1 : 0)))
    const embedded = await startEmbedded(configuration, closers)
    const settings = composeSettings(configuration, embedded)
    const store = existingStore ?? openStore(locateStore(configuration))
    if (!existingStore) closers.push(store.close)
    const network = guardNetwork(openNetwork(settings.network))
    await checkSurroundings({ database: store.database, network }, configuration)
    // PGlite blocks this process for seconds while it opens, so open it now and not on the first request. A folder that
    // doesn't open fails startup; an unreachable server does not.
    if (!configuration.DATABASE_URL) await store.database()
    const now = () => new Date()
    const archive = settings.token ? { network, token: settings.token, database: store.database } : undefined
    // Vercel freezes a process between requests, so the chores alone don't keep the archive up to date there.
    const hasChores = choresEveryMs > 0 && !configuration.VERCEL
    const tracker = openTracker({
      network,
      database: store.database,
      now,
      archive: hasChores ? undefined : archive,
      ...(archive && {
        isForeignNetwork: async () => await isForeignNetwork(await store.database(), archive, undefined, 0),
      }),
    })
    closers.push(tracker.stop)
    const { token } = settings
    const channels = token && { database: store.database, token, now, network, readAccount: tracker.readAccount }
    const unfunded =
      settings.sponsor &&
      openSponsor({
        ...settings.sponsor,
        ...(channels && { compareChannels: openComparison(channels) }),
        network,
        tracker,
        now,
      })
    const sponsor = unfunded && embedded.friendbotUrl ? fundMeanwhile(unfunded, embedded.friendbotUrl) : unfunded
    const granted = settings.faucet && { ...settings.faucet, network }
    const faucet = granted && { ...granted, granting: openGranting({ ...granted, tracker }) }
    const vault = settings.vault && openVault({ ...settings.vault, server: network.server })
    const confidentialAccounts = { network, token: settings.token }
    const batch = settings.batch && { ...settings.batch, relayKey: await keyIdOf(settings.batch.key) }
    const webhooks = {
      ...settings.webhooks,
      database: store.database,
      mail: settings.mail,
      now,
      resolve: openResolver(),
    }
    const parts = { archive, tracker, sponsor, faucet, vault, batch, webhooks }
    const service = { settings, network, database: store.database, confidentialAccounts, ...parts, now, close }
    if (choresEveryMs > 0) closers.push(startMaintenance(service, choresEveryMs), startPublishing(store.database))
    if (hasChores) closers.push(startDelivering(service))
    if (embedded.isAlone && settings.relay && batch) {
      // The relay prepares its channels while it runs. If its port is taken, it runs without its two pages.
      closers.push((await startRelay(service, { prepares: true, mayBeMute: true })).close)
    }
    return service
  } catch (error) {
    await close()
    throw error
  }
}

/** Many functions share one database, and each has few requests at a time. */
const CONNECTIONS_ON_VERCEL = 4

function locateStore({ DATABASE_URL, DATA_DIR, VERCEL }: Environment): StoreLocation {
  if (!DATABASE_URL) return { directory: dataPath(DATA_DIR, 'database') }
  return { url: DATABASE_URL, ...(VERCEL && { connections: CONNECTIONS_ON_VERCEL }) }
}

/** The values that the embedded parts provide in addition to settings. */
interface EmbeddedParts {
  friendbotUrl?: string
  /** only this process can reach the database or the ledger's keys, so the relay must run in it */
  isAlone?: boolean
}

/**
 * Starts an embedded ledger and database where none is configured. Their files and keys are in DATA_DIR, which this
 * process then locks.
 */
async function startEmbedded(
  configuration: Environment,
  closers: (() => unknown)[],
): Promise<Embedded & EmbeddedParts> {
  const embedsDatabase = !configuration.DATABASE_URL
  if (!embedsLedger(configuration) && !embedsDatabase) return {}
  closers.push(lockDirectory(configuration.DATA_DIR))
  const { generateIdentityKey } = await import('#lib/devnet/devnet.ts')
  const keys = await keepKeys(configuration.DATA_DIR, generateIdentityKey)
  return {
    isAlone: true,
    ...(embedsDatabase && { sessionSecret: keys.sessionSecret }),
    ...(embedsLedger(configuration) && (await embedLedger(configuration, keys, closers))),
  }
}

async function embedLedger(
  configuration: Environment,
  keys: EmbeddedKeys,
  closers: (() => unknown)[],
): Promise<Embedded & EmbeddedParts & { friendbotUrl: string }> {
  const { devnet, issuer, audience } = await startLedger(
    configuration,
    keys.identityKey,
    describeRelay(configuration, keys),
  )
  closers.push(devnet.close)
  return {
    sponsorSeed: keys.sponsorSeed,
    faucetSeed: devnet.issuerSecret,
    channelSeeds: keys.channelSeeds,
    relayKey: keys.relayKey,
    rpcUrl: devnet.rpcUrl,
    token: devnet.deployment.contracts.token,
    provider: { issuer, audience, jwksUrl: `${issuer}/jwks`, algorithms: ['ES256'], emailClaim: 'email' },
    friendbotUrl: devnet.friendbotUrl,
  }
}

/** On SIGTERM, Next drains its requests and then calls process.exit. Everything that they use stays open until then. */
function closeAtExit(running: RunningService): void {
  noteEnding()
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
