import { ConfigurationError, environment } from '#lib/config/environment.ts'
import { migrateStore } from '#lib/db/connection.ts'
import { innermostReason } from '#lib/db/errors.ts'
import { runCommand } from './process/command.ts'
import { print } from './process/output.ts'

const USAGE = `npm run migrate

Applies the missing migrations to the PostgreSQL of DATABASE_URL. A build on Vercel runs it, so that no request waits for it.`

await runCommand({
  usage: USAGE,
  options: {},
  // A driver's error may contain the URL with its password, and drizzle's error the whole query, so only the innermost
  // reason is shown.
  explain: (error) => `not migrated: ${innermostReason(error)}`,
  run: async () => {
    const { DATABASE_URL } = environment()
    if (!DATABASE_URL) {
      throw new ConfigurationError('DATABASE_URL', 'is needed: the service migrates an embedded database itself')
    }
    await migrateStore({ url: DATABASE_URL, connections: 1 })
    print('the database is migrated')
  },
})
