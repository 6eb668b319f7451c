import { Keypair } from '@stellar/stellar-sdk'
import { eq } from 'drizzle-orm'
import { batches } from '#drizzle/schema/directory.ts'
import { DirectoryInUse, dataPath, lockDirectory } from '#lib/config/data-directory.ts'
import { keepKeys } from '#lib/config/embedded-keys.ts'
import { type Environment, environment } from '#lib/config/environment.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { type Database, openStore, transact } from '#lib/db/connection.ts'
import { generateIdentityKey } from '#lib/devnet/devnet.ts'
import { quotaDay, release, reserve } from '#lib/transfers/quota.ts'
import { messageOf, runCommand } from './command.ts'
import { inviteEvents } from './seed/invites.ts'
import { BID, composeRecords, type Records, type SeededTransfer } from './seed/records.ts'
import { envelopeRow, insertRows } from './seed/rows.ts'
import { openSource } from './seed/source.ts'
import { TODAY } from './seed/story.ts'

const USAGE = `Usage: npm run seed -- [--more N]

Fills a local service with three organisations, their contractors, batches in every state and a week of history, to
look at. Nothing is sent to the ledger: the hashes are made up. An embedded database belongs to one process, so stop
the service first; a PostgreSQL (DATABASE_URL) can be filled while it runs.

  --more N   N more contractors and N more batches with a payout each, to see how long lists behave
  --help     this text
`

/** Made-up records must never mix with those of a shared network or of a deployment. */
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
    const seeded = await db
      .select({ id: batches.id })
      .from(batches)
      .where(eq(batches.name, TODAY[0]?.name ?? ''))
    if (seeded.length > 0) throw new Error('This service has been seeded before.')
    const now = new Date()
    const accounts = await accountsOf(configuration)
    const records = composeRecords({ source: openSource('seed'), ...accounts, now, more })
    await transact(db, (tx) => insertRecords(tx, records, now))
    const [organisationCount, batchCount] = [records.organisations.length, records.batches.length]
    console.log(
      `Seeded ${organisationCount} organisations, ${batchCount} batches and ${records.transfers.length} transfers.`,
    )
    console.log(`Start the service with npm start and open ${configuration.PUBLIC_URL}/overview.`)
  } finally {
    await store.close()
    unlock()
  }
}

/** Inserts all records. The sequence numbers and ledgers of the transfers follow their order in time. */
async function insertRecords(tx: Database, records: Records, now: Date): Promise<void> {
  const placed = records.transfers.map((transfer, index) => {
    const ledger = transfer.hash ? 1_000 + index : null
    return { ...transfer, sequenceNumber: BigInt(index + 1), ledger }
  })
  await insertRows(tx, { ...records, transfers: placed, envelopes: records.transfers.map(envelopeOf) })
  await bookQuotas(tx, records.transfers, now)
  // The audit log is read in the order in which it was written.
  const noted = [...Map.groupBy(records.diary, ({ at }) => at.getTime())].map(([time, entries]) => {
    const at = new Date(time)
    return { at, write: (db: Database) => recordAudit(db, at, ...entries.map(({ entry }) => entry)) }
  })
  const events = [...noted, ...records.invites.flatMap(inviteEvents)]
  for (const { write } of events.toSorted((one, other) => one.at.getTime() - other.at.getTime())) await write(tx)
}

/** How far ahead the maxTime of an open transfer lies. The ledger never saw it, so a nearer one would let it expire. */
const FAR_MS = 365 * 86_400_000

/** The envelope of a transfer. There is nothing to send: the ledger has never heard of it. */
function envelopeOf({ id = '', innerHash, outerHash, status, createdAt }: SeededTransfer) {
  const maxTime = Math.floor((createdAt.getTime() + (status === 'open' ? FAR_MS : 300_000)) / 1000)
  const sent = { recordedAt: createdAt, firstSentAt: createdAt, lastSentAt: createdAt }
  return envelopeRow({ innerHash, outerHash, transfer: id, bid: BID, maxTime, ...sent })
}

const PLENTY = 10n ** 15n
const LIMITS = { transfersPerAccount: 1_000_000, stroopsPerAccount: PLENTY, dailyBudget: PLENTY }

/** Books what the transfers of today used of the quotas, and what is held for those that are open. */
async function bookQuotas(tx: Database, made: readonly SeededTransfer[], now: Date): Promise<void> {
  for (const { account, quotaAccount, quotaDay: day, sponsor, bid, status, feeCharged } of made) {
    if (!sponsor || (day !== quotaDay(now) && status !== 'open')) continue
    const claim = { account: quotaAccount ?? account, day, sponsor, bid }
    await reserve(tx, { ...claim, count: 1 }, LIMITS, PLENTY)
    if (status !== 'open') await release(tx, claim, feeCharged ?? 0n)
  }
}

/** The sponsor whose spending is shown and the channels of the relay: those configured, or those of an embedded service. */
async function accountsOf(given: Environment): Promise<{ sponsor: string; channels: string[] }> {
  const { SPONSOR_SEED, CHANNEL_SEEDS, DATABASE_URL, DATA_DIR } = given
  const kept = DATABASE_URL ? undefined : await keepKeys(DATA_DIR, generateIdentityKey)
  const sponsorSeed = SPONSOR_SEED ?? kept?.sponsorSeed
  const channelSeeds = CHANNEL_SEEDS.length > 0 ? CHANNEL_SEEDS : (kept?.channelSeeds ?? [])
  const addressOf = (seed: string) => Keypair.fromSecret(seed).publicKey()
  return {
    sponsor: sponsorSeed ? addressOf(sponsorSeed) : openSource('sponsor').address(),
    channels: channelSeeds.map(addressOf),
  }
}

await runCommand({
  usage: USAGE,
  options: { more: { type: 'string', default: '0' } },
  run: ({ more }) => seed(more),
  explain: (error) =>
    error instanceof DirectoryInUse
      ? 'The service is running: stop it first, and start it afterwards.'
      : messageOf(error),
})
