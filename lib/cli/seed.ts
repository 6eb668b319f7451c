import { DEVELOPMENT_DIRECTORY, DirectoryInUse } from '#lib/config/data-directory.ts'
import { environment } from '#lib/config/environment.ts'
import { messageOf, runCommand } from './process/command.ts'
import { print } from './process/output.ts'
import { seedService } from './seed/service.ts'

const USAGE = `Usage: npm run seed -- [--more N]

Fills a local service with three organisations, their contractors, batches in every state and a week of history to look
at. Submits nothing to the ledger: the hashes are fictional. An embedded database belongs to one process, so stop the
service first; a PostgreSQL (DATABASE_URL) can be filled while the service runs.

  --more N   N more contractors, and N more batches with one payout each, to try long lists
  --help     this text
`

/** The command that runs the service of DATA_DIR. */
const starter = () => (environment().DATA_DIR === DEVELOPMENT_DIRECTORY ? 'npm run dev' : 'npm start')

/** What to do while a service holds the embedded database. */
function describeSteps(): string {
  return `A running service holds the embedded database in ${environment().DATA_DIR}.
  1. Stop the service: press Ctrl-C where ${starter()} (or npm run demo) runs.
  2. Run this command again.
  3. Start the service: ${starter()}
A service on PostgreSQL need not stop: set DATABASE_URL for it and for this command.`
}

await runCommand({
  usage: USAGE,
  options: { more: { type: 'string', default: '0' } },
  run: async ({ more }) => {
    const count = Number(more)
    if (!Number.isSafeInteger(count) || count < 0) throw new Error('--more takes a whole number.')
    const configuration = environment()
    const seeded = await seedService(configuration, count)
    print(`Seeded ${seeded.organisations} organisations, ${seeded.batches} batches and ${seeded.transfers} transfers.`)
    print(`Start the service with ${starter()} and open ${configuration.PUBLIC_URL}/overview.`)
  },
  explain: (error) => (error instanceof DirectoryInUse ? describeSteps() : messageOf(error)),
})
