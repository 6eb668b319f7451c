import { randomBytes } from 'node:crypto'
import { Keypair } from '@stellar/stellar-sdk'
import { readKeys } from '#lib/config/embedded-keys.ts'
import { ConfigurationError, type Environment, environment } from '#lib/config/environment.ts'
import { DisclosureError } from '#lib/disclosure/disclosure-error.ts'
import { isChannelAddress, releaseMoved } from '#lib/relay/moved.ts'
import { RELEASE_REFUSAL_EXPLANATIONS } from '#lib/relay/release-request.ts'
import { composeRelay, startRelay } from '#lib/server/relay.ts'
import { startService } from '#lib/server/start.ts'
import { discloseForOwner } from './client/delegated-disclosure.ts'
import { explainDisclosure } from './client/disclosure.ts'
import { NETWORK_OPTIONS, openNetworkOf } from './client/network-options.ts'
import { runCommand, UsageError, type Values } from './process/command.ts'

const USAGE = `npm run relay
npm run relay -- release G... [--unverified]
npm run -s relay -- disclose --request FILE --hash ... --signature ... --out FILE [--archive URL] [--network URL]

Without arguments: runs a relay beside a service that shares its database, until SIGTERM. It pays the items of batch jobs
from the accounts in CHANNEL_SEEDS. See docs/configuration.md for its variables; npm run setup generates them.

release: releases a channel that is held because the ledger has transactions of it that the database lacks, as after a
restore from a backup. First records those transfers and settles the items that they paid, from the RPC's events. If the
RPC no longer has them it says so and changes nothing: check the payees on the ledger yourself, then pass --unverified.

disclose: answers a request to disclose payments that a channel in CHANNEL_SEEDS made from a delegation, if the owner has
signed it (npm run wallet -- authorize-disclosure). Repeat --hash for several. See docs/disclosure.md.`

/**
 * The configuration of a relay that runs alongside a service. It signs no sessions, so their secret may be random. Its
 * maintenance resumes the items of its key, whether or not this host's configuration enables batch jobs.
 * @throws ConfigurationError if the database or the ledger would be embedded: the service then runs a relay itself
 */
function besideService(configuration: Environment): Environment {
  const { DATABASE_URL, STELLAR_NETWORK, STELLAR_RPC_URL, SESSION_SECRET } = configuration
  const problem = 'is needed: an embedded one belongs to the service, which runs a relay itself'
  if (!DATABASE_URL) throw new ConfigurationError('DATABASE_URL', problem)
  if (STELLAR_NETWORK === 'local' && !STELLAR_RPC_URL) throw new ConfigurationError('STELLAR_RPC_URL', problem)
  return { ...configuration, BATCH_ENABLED: true, SESSION_SECRET: SESSION_SECRET ?? randomBytes(32).toString('hex') }
}

async function run(): Promise<void> {
  const service = await startService(besideService(environment()))
  const host = await startRelay(service)
  console.log(`relay  ${host.url}/.well-known/disbursement-relay`)
  const stop = async () => {
    await host.close()
    await service.close()
    process.exit(0)
  }
  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
}

async function release(address: string, isUnverified: boolean): Promise<void> {
  const service = await startService(besideService(environment()), undefined, 0)
  try {
    const prover = { prove: () => Promise.reject(new Error('releasing a channel needs no proofs')) }
    const released = await releaseMoved(await composeRelay(service, { prover }), { address, isUnverified })
    if (typeof released === 'string') throw new ConfigurationError(address, RELEASE_REFUSAL_EXPLANATIONS[released])
    const { recorded, settled } = released
    console.log(`released ${address}: ${recorded} missing transfers recorded, ${settled} items settled`)
  } finally {
    await service.close()
  }
}

/** The channels of this host, or of the embedded service in DATA_DIR. */
function channelsOf({ CHANNEL_SEEDS, DATA_DIR }: Environment): Keypair[] {
  const seeds = CHANNEL_SEEDS.length > 0 ? CHANNEL_SEEDS : readKeys(DATA_DIR)?.channelSeeds
  if (!seeds) throw new ConfigurationError('CHANNEL_SEEDS', 'is needed: the keys of the channels that have paid')
  return seeds.map((seed) => Keypair.fromSecret(seed))
}

const OPTIONS = {
  unverified: { type: 'boolean', default: false },
  request: { type: 'string' },
  hash: { type: 'string', multiple: true },
  signature: { type: 'string' },
  out: { type: 'string' },
  ...NETWORK_OPTIONS,
} as const

async function disclose(given: Values<typeof OPTIONS>): Promise<void> {
  const { request, hash: hashes, signature, out } = given
  if (!request || !hashes || !signature || !out) {
    throw new UsageError('npm run relay -- disclose needs --request, --hash, --signature and --out')
  }
  const channels = channelsOf(environment())
  console.log(await discloseForOwner(await openNetworkOf(given), channels, { request, hashes, signature, out }))
}

await runCommand({
  usage: USAGE,
  options: OPTIONS,
  explain: (error) => (error instanceof DisclosureError ? explainDisclosure(error) : error),
  run: async (given, [verb, address]) => {
    if (verb === undefined) return await run()
    if (verb === 'disclose') return await disclose(given)
    if (verb !== 'release' || !isChannelAddress(address)) {
      throw new UsageError('npm run relay takes no argument, release and a channel’s address, or disclose')
    }
    await release(address, given.unverified)
  },
})
