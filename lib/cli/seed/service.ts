import { Keypair } from '@stellar/stellar-sdk'
import { eq } from 'drizzle-orm'
import { batches } from '#drizzle/schema/directory.ts'
import { dataPath, lockDirectory } from '#lib/config/data-directory.ts'
import { keepKeys } from '#lib/config/embedded-keys.ts'
import type { Environment } from '#lib/config/environment.ts'
import { openStore, transact } from '#lib/db/connection.ts'
import { generateIdentityKey } from '#lib/devnet/devnet.ts'
import { insertRecords } from './insertion.ts'
import { composeRecords } from './records.ts'
import { openSource } from './source.ts'
import { TODAY } from './story.ts'

/** Fictional records must never be added to a shared network or a deployment. */
function requireLocal({ STELLAR_NETWORK, VERCEL }: Environment): void {
  if (STELLAR_NETWORK !== 'local' || VERCEL) {
    throw new Error('Only a local service can be seeded: STELLAR_NETWORK must be local.')
  }
}

/** Fills the database of a local service. Resolves to the numbers of records. */
export async function seedService(configuration: Environment, more: number) {
  requireLocal(configuration)
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
    return {
      organisations: records.organisations.length,
      batches: records.batches.length,
      transfers: records.transfers.length,
    }
  } finally {
    await store.close()
    unlock()
  }
}

/** The configured sponsor and channels, or those of an embedded service. */
async function accountsOf(configuration: Environment): Promise<{ sponsor: string; channels: string[] }> {
  const { SPONSOR_SEED, CHANNEL_SEEDS, DATABASE_URL, DATA_DIR } = configuration
  const keys = DATABASE_URL ? undefined : await keepKeys(DATA_DIR, generateIdentityKey)
  const sponsorSeed = SPONSOR_SEED ?? keys?.sponsorSeed
  const channelSeeds = CHANNEL_SEEDS.length > 0 ? CHANNEL_SEEDS : (keys?.channelSeeds ?? [])
  const addressOf = (seed: string) => Keypair.fromSecret(seed).publicKey()
  return {
    sponsor: sponsorSeed ? addressOf(sponsorSeed) : openSource('sponsor').address(),
    channels: channelSeeds.map(addressOf),
  }
}
