import { ConfigurationError, type Environment } from '#lib/config/environment.ts'
import { NewerDatabase } from '#lib/db/migration.ts'
import { ForeignNetwork, type GuardedNetwork } from '#lib/stellar/network.ts'
import type { Service } from './services.ts'

/** How long the boot waits for database and RPC. If one is out of reach, the service starts all the same. */
const PATIENCE_MS = 3_000

/**
 * Checks that the database was not migrated by a newer version, and that the RPC is of the configured network. One that cannot be reached passes, and answers 503
 * until it is back; if it then turns out to be the wrong one, it goes on answering 503, and the log says why.
 * @throws ConfigurationError that names the variable
 */
export async function checkSurroundings(
  { database, network }: Pick<Service, 'database'> & { network: GuardedNetwork },
  { DATABASE_URL }: Pick<Environment, 'DATABASE_URL'>,
): Promise<void> {
  const checks = Promise.all([
    caused(NewerDatabase, database(), ({ message }) => {
      return new ConfigurationError(DATABASE_URL ? 'DATABASE_URL' : 'DATA_DIR', message)
    }),
    caused(ForeignNetwork, network.verify(), ({ message }) => new ConfigurationError('STELLAR_RPC_URL', message)),
  ])
  const late = Promise.withResolvers<void>()
  const timer = setTimeout(late.resolve, PATIENCE_MS)
  await Promise.race([checks, late.promise]).finally(() => clearTimeout(timer))
}

/** Waits for `attempt` and ignores how it ends, unless it failed for the one cause. */
async function caused<Cause extends Error>(
  cause: new (...given: never[]) => Cause,
  attempt: Promise<unknown>,
  told: (cause: Cause) => ConfigurationError,
): Promise<void> {
  const error = await attempt.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (error instanceof Error && error.cause instanceof cause) throw told(error.cause)
}
