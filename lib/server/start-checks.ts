import { OtherVersion } from '#lib/config/data-directory.ts'
import { ConfigurationError, type Environment } from '#lib/config/environment.ts'
import { OtherSchema } from '#lib/db/migration.ts'
import { ForeignNetwork, type GuardedNetwork } from '#lib/stellar/network.ts'
import type { Service } from './services.ts'

/** How long startup waits for the database and the RPC. The service also starts if they are unreachable. */
const PATIENCE_MS = 3_000

/**
 * Checks that the database has the schema of this version, and that the RPC serves the configured network. If one is
 * unreachable, the check passes and requests get 503 until it is reachable. If it then has the wrong schema or network,
 * requests still get 503, and the log gives the reason.
 * @throws ConfigurationError that names the variable
 */
export async function checkSurroundings(
  { database, network }: Pick<Service, 'database'> & { network: GuardedNetwork },
  { DATABASE_URL }: Pick<Environment, 'DATABASE_URL'>,
): Promise<void> {
  const checks = Promise.all([
    caused(OtherSchema, database(), ({ message }) => {
      return new ConfigurationError(DATABASE_URL ? 'DATABASE_URL' : 'DATA_DIR', message)
    }),
    caused(OtherVersion, database(), ({ message }) => new ConfigurationError('DATA_DIR', message)),
    caused(ForeignNetwork, network.verify(), ({ message }) => new ConfigurationError('STELLAR_RPC_URL', message)),
  ])
  const late = Promise.withResolvers<void>()
  const timer = setTimeout(late.resolve, PATIENCE_MS)
  await Promise.race([checks, late.promise]).finally(() => clearTimeout(timer))
}

/** Waits for `attempt` and ignores its outcome, unless it failed with `cause`. */
async function caused<Cause extends Error>(
  cause: new (...args: never[]) => Cause,
  attempt: Promise<unknown>,
  explain: (cause: Cause) => ConfigurationError,
): Promise<void> {
  const error = await attempt.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (error instanceof Error && error.cause instanceof cause) throw explain(error.cause)
}
