import { openStore } from '#lib/db.ts'
import { ConfigurationError, environment } from '#lib/env.ts'

/** Migrates the configured PostgreSQL, as a build does that must not leave it to the first request. */
async function main(): Promise<void> {
  const { DATABASE_URL } = environment()
  if (!DATABASE_URL) {
    throw new ConfigurationError('DATABASE_URL', 'is needed: the embedded database is migrated by the service itself')
  }
  const store = openStore({ url: DATABASE_URL, connections: 2 })
  try {
    await store.database()
  } finally {
    await store.close()
  }
  console.log('the database is migrated')
}

await main().catch((error: unknown) => {
  if (error instanceof ConfigurationError) console.error(error.message)
  else console.error(error instanceof Error && error.cause instanceof Error ? error.cause.message : error)
  process.exit(1)
})
