import { DirectoryInUse } from '#lib/config/data-directory.ts'
import { environment } from '#lib/config/environment.ts'
import { messageOf, runCommand } from './process/command.ts'
import { seedService } from './seed/service.ts'

const USAGE = `Usage: npm run seed -- [--more N]

Fills a local service with three organisations, their contractors, batches in every state and a week of history to look
at. Submits nothing to the ledger: the hashes are fictional. An embedded database belongs to one process, so stop the
service first; a PostgreSQL (DATABASE_URL) can be filled while the service runs.

  --more N   N more contractors, and N more batches with one payout each, to try long lists
  --help     this text
`

await runCommand({
  usage: USAGE,
  options: { more: { type: 'string', default: '0' } },
  run: async ({ more }) => {
    const count = Number(more)
    if (!Number.isSafeInteger(count) || count < 0) throw new Error('--more takes a whole number.')
    const configuration = environment()
    const seeded = await seedService(configuration, count)
    console.log(
      `Seeded ${seeded.organisations} organisations, ${seeded.batches} batches and ${seeded.transfers} transfers.`,
    )
    console.log(`Start the service with npm start and open ${configuration.PUBLIC_URL}/overview.`)
  },
  explain: (error) =>
    error instanceof DirectoryInUse
      ? 'The service is running. Stop it first, and start it afterwards.'
      : messageOf(error),
})
