import { ConfigurationError, environment } from '#lib/config/environment.ts'
import { migrateStore } from '#lib/db/connection.ts'
import { innermostReason } from '#lib/db/errors.ts'

/** Migrates the configured PostgreSQL, as a build does that must not leave it to the first request. */
async function main(): Promise<void> {
  const { DATABASE_URL } = environment()
  if (!DATABASE_URL) {
    throw new ConfigurationError('DATABASE_URL', 'is needed: the embedded database is migrated by the service itself')
  }
  await migrateStore({ url: DATABASE_URL, connections: 1 })
  console.log('the database is migrated')
}

await main().catch((error: unknown) => {
  // What a driver throws may hold the URL, and drizzle's message the query: what is wrong is neither.
  console.error(error instanceof ConfigurationError ? error.message : `not migrated: ${innermostReason(error)}`)
  process.exit(1)
})
