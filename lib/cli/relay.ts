import { randomBytes } from 'node:crypto'
import { Keypair, StrKey } from '@stellar/stellar-sdk'
import { readKeys } from '#lib/config/embedded-keys.ts'
import { ConfigurationError, type Environment, environment } from '#lib/config/environment.ts'
import { readVersion } from '#lib/config/version.ts'
import type { Actor } from '#lib/db/audit-log.ts'
import type { Database } from '#lib/db/connection.ts'
import { DisclosureError } from '#lib/disclosure/disclosure-error.ts'
import { log } from '#lib/observability/log.ts'
import { changeChannel } from '#lib/relay/channel-state.ts'
import { resumePayments } from '#lib/relay/resume.ts'
import { startRelay } from '#lib/server/relay.ts'
import { startService } from '#lib/server/start.ts'
import { discloseForOwner } from './client/delegated-disclosure.ts'
import { explainDisclosure } from './client/disclosure.ts'
import { NETWORK_OPTIONS, openNetworkOf } from './client/network-options.ts'
import { runCommand, UsageError, type Values } from './process/command.ts'
import { print } from './process/output.ts'

const USAGE = `npm run relay
npm run relay -- resume --note TEXT
npm run relay -- retire G... --note TEXT
npm run -s relay -- disclose --request FILE --hash ... --signature ... --out FILE [--archive URL] [--network URL]

Without arguments: runs a relay beside a service that shares its database, until SIGTERM. It pays the items of batch jobs
from the accounts in CHANNEL_SEEDS. See docs/configuration.md for its variables; npm run setup generates them.

Payments stop when the ledger shows transactions of a channel that the database lacks, as after a restore from a backup. The
relays then find those payments, and payments go on by themselves. Where that needs a word, the overview says so:

resume: lets payments go on. If a channel's history is not whole, every payout from before the stop that was not paid becomes
pending with the error restored-without-history: check the payees on the ledger first (docs/operate.md, "Payments are stopped").

retire: ends the comparison of a channel with the ledger. It never pays again.

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
  log('info', 'start', { ...readVersion() })
  print(`relay  ${host.url}/.well-known/disbursement-relay`)
  const stop = async () => {
    await host.close()
    await service.close()
    process.exit(0)
  }
  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
}

/** Runs an operator's command against the database of the relays. */
async function command(run: (context: { db: Database; now: Date; actor: Actor; token: string }) => Promise<string>) {
  const service = await startService(besideService(environment()), undefined, 0)
  try {
    const { token } = service.settings
    if (!token) throw new ConfigurationError('CONFIDENTIAL_TOKEN', 'is needed: payments of this token are stopped')
    const actor = { kind: 'operator' as const, sub: 'command line' }
    print(await run({ db: await service.database(), now: service.now(), actor, token }))
  } finally {
    await service.close()
  }
}

const resume = (note: string) =>
  command(async (context) => {
    const resumed = await resumePayments(context, { note })
    if (resumed === 'resumed') return 'payments go on'
    if (resumed === 'not-stopped') throw new UsageError('payments are not stopped')
    if ('undecided' in resumed)
      throw new UsageError(`transfer ${resumed.undecided} is not decided yet: it ends once the RPC responds`)
    throw new UsageError(`the relays are still reconciling channel ${resumed.waitsFor}: payments go on by themselves`)
  })

const retire = (address: string, note: string) =>
  command(async (context) => {
    const { token } = context
    if (await changeChannel(context, { token, address, note, change: 'retired' })) return `retired ${address}`
    throw new UsageError(`there is no channel ${address} of this token, or it is retired already`)
  })

/** The channels of this host, or of the embedded service in DATA_DIR. */
function channelsOf({ CHANNEL_SEEDS, DATA_DIR }: Environment): Keypair[] {
  const seeds = CHANNEL_SEEDS.length > 0 ? CHANNEL_SEEDS : readKeys(DATA_DIR)?.channelSeeds
  if (!seeds) throw new ConfigurationError('CHANNEL_SEEDS', 'is needed: the keys of the channels that have paid')
  return seeds.map((seed) => Keypair.fromSecret(seed))
}

const OPTIONS = {
  note: { type: 'string' },
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
  print(await discloseForOwner(await openNetworkOf(given), channels, { request, hashes, signature, out }))
}

await runCommand({
  usage: USAGE,
  options: OPTIONS,
  explain: (error) => (error instanceof DisclosureError ? explainDisclosure(error) : error),
  run: async (given, [verb, address]) => {
    if (verb === undefined) return await run()
    if (verb === 'disclose') return await disclose(given)
    const { note } = given
    if (verb === 'resume' || verb === 'retire') {
      if (!note) throw new UsageError(`npm run relay -- ${verb} needs --note: it goes to the audit log`)
      if (verb === 'resume') return await resume(note)
      if (address !== undefined && StrKey.isValidEd25519PublicKey(address)) return await retire(address, note)
    }
    throw new UsageError('npm run relay takes no argument, resume, retire and a channel’s address, or disclose')
  },
})
