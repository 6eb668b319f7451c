import { randomBytes } from 'node:crypto'
import { ConfigurationError, type Environment } from '#lib/config/environment.ts'

/**
 * The configuration of a process that works beside the service and has no sessions of its own: it need not know the
 * secret that they are signed with. What is embedded belongs to the service alone, which runs a relay of its own.
 * @throws ConfigurationError
 */
export function besideService(configuration: Environment): Environment {
  const { DATABASE_URL, STELLAR_NETWORK, STELLAR_RPC_URL, SESSION_SECRET } = configuration
  const own = 'is needed: an embedded one belongs to the service, which runs a relay of its own'
  if (!DATABASE_URL) throw new ConfigurationError('DATABASE_URL', own)
  if (STELLAR_NETWORK === 'local' && !STELLAR_RPC_URL) throw new ConfigurationError('STELLAR_RPC_URL', own)
  return { ...configuration, SESSION_SECRET: SESSION_SECRET ?? randomBytes(32).toString('hex') }
}
