import { Keypair } from '@stellar/stellar-sdk'
import { DirectoryInUse, dataPath, lockDirectory } from '#lib/config/data-directory.ts'
import { keepKeys } from '#lib/config/embedded-keys.ts'
import { type Environment, environment } from '#lib/config/environment.ts'
import { openStore, transact } from '#lib/db/connection.ts'
import { generateIdentityKey } from '#lib/devnet/devnet.ts'
import { runCommand } from './command.ts'
import { hasBatch, plannedBatches, seedBatches } from './seed/batches.ts'
import { type DiaryEntry, recordDiary } from './seed/diary.ts'
import { seedDirectory } from './seed/directory.ts'
import { openSource } from './seed/random.ts'
import { refusalsOf, seedJobs, seedQuotas } from './seed/relay.ts'
import { TODAY } from './seed/story.ts'
import { seedTransfers } from './seed/transfers.ts'

const USAGE = `Usage: npm run seed -- [--more N]

Fills a local service with three organisations, their contractors, batches in every state and a week of history, to
look at. Nothing is sent to the ledger: the hashes are made up. An embedded database belongs to one process, so stop
the service first; a PostgreSQL (DATABASE_URL) can be filled while it runs.

  --more N   N more contractors and N more batches with a payout each, to see how long lists behave
  --help     this text
`

/** Seeds are for looking at: a network that others use is left alone. */
function requireLocal({ STELLAR_NETWORK, VERCEL }: Environment): void {
  if (STELLAR_NETWORK !== 'local' || VERCEL) {
    throw new Error('Only a local service can be seeded: STELLAR_NETWORK must be local.')
  }
}

async function seed(given: string): Promise<void> {
  const configuration = environment()
  requireLocal(configuration)
  const more = Number(given)
  if (!Number.isSafeInteger(more) || more < 0) throw new Error('--more takes a whole number.')
  const { DATABASE_URL, DATA_DIR } = configuration
  const unlock = DATABASE_URL ? () => undefined : lockDirectory(DATA_DIR)
  const store = openStore(DATABASE_URL ? { url: DATABASE_URL } : { directory: dataPath(DATA_DIR, 'database') })
  try {
    const db = await store.database()
    const [first] = TODAY
    if (first && (await hasBatch(db, first.name))) throw new Error('This service has been seeded before.')
    const sponsor = await sponsorOf(configuration)
    const now = new Date()
    const source = openSource('seed')
    const organisations = await seedDirectory(db, source, now, more)
    const planned = plannedBatches(organisations, source, more)
    const diary: DiaryEntry[] = []
    const paid = await seedBatches(db, organisations, planned, source, now, diary)
    const relayed = organisations[1] ? await seedJobs(db, organisations[1], source, now) : []
    const transfers = [...paid, ...relayed].sort((one, other) => one.createdAt.getTime() - other.createdAt.getTime())
    const fees = await transact(db, (tx) => seedTransfers(tx, sponsor, source, transfers))
    await recordDiary(db, [...diary, ...refusalsOf(organisations, source, now)])
    await seedQuotas(db, transfers, fees, now)
    console.log(
      `Seeded ${organisations.length} organisations, ${planned.length} batches and ${transfers.length} transfers.`,
    )
    console.log(`Start the service with npm start and open ${configuration.PUBLIC_URL}/overview.`)
  } finally {
    await store.close()
    unlock()
  }
}

/** The sponsor whose spending is shown: the configured one, or the one that an embedded service has. */
async function sponsorOf({ SPONSOR_SEED, DATABASE_URL, DATA_DIR }: Environment): Promise<string> {
  if (SPONSOR_SEED) return Keypair.fromSecret(SPONSOR_SEED).publicKey()
  if (DATABASE_URL) return openSource('sponsor').address()
  return Keypair.fromSecret((await keepKeys(DATA_DIR, generateIdentityKey)).sponsorSeed).publicKey()
}

await runCommand({
  usage: USAGE,
  options: { more: { type: 'string', default: '0' } },
  run: ({ more }) => seed(more),
  explain: (error) =>
    error instanceof DirectoryInUse
      ? 'The service is running: stop it first, and start it afterwards.'
      : error instanceof Error
        ? error.message
        : error,
})
