import { randomBytes } from 'node:crypto'
import { ConfigurationError, type Environment, environment } from '#lib/config/environment.ts'
import { startRelay } from '#lib/server/relay.ts'
import { startService } from '#lib/server/start.ts'
import { runCommand } from './command.ts'

const USAGE = `npm run relay

Runs a relay beside a service that has the same database, until SIGTERM. It pays the items of batch jobs from the accounts
of CHANNEL_SEEDS. docs/configuration.md says what else it needs; npm run setup makes all of it.`

/**
 * The configuration of a relay that runs beside a service. It has no sessions, so their secret may be a random one. Its
 * maintenance resumes the items of its key, whether or not its host is told that the service accepts jobs.
 * @throws ConfigurationError where database or ledger would be embedded: then the service runs a relay itself
 */
function besideService(configuration: Environment): Environment {
  const { DATABASE_URL, STELLAR_NETWORK, STELLAR_RPC_URL, SESSION_SECRET } = configuration
  const own = 'is needed: an embedded one belongs to the service, which runs a relay of its own'
  if (!DATABASE_URL) throw new ConfigurationError('DATABASE_URL', own)
  if (STELLAR_NETWORK === 'local' && !STELLAR_RPC_URL) throw new ConfigurationError('STELLAR_RPC_URL', own)
  return { ...configuration, BATCH_ENABLED: true, SESSION_SECRET: SESSION_SECRET ?? randomBytes(32).toString('hex') }
}

await runCommand({
  usage: USAGE,
  options: {},
  explain: (error) => error,
  run: async () => {
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
  },
})
