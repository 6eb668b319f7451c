import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'
import type { ArchiveContext } from '#lib/archive/ingest.ts'
import type { Database } from '#lib/db/connection.ts'
import { openNetwork } from '#lib/stellar/network.ts'
import { cloneDatabase, type TestDatabase } from '../support/database.ts'
import { CONTRACTS, type EventRpc, startEventRpc } from '../support/event-rpc.ts'

const PASSPHRASE = 'Standalone Network ; February 2017'

export let database: TestDatabase
export let db: Database
export let fake: EventRpc
export let context: ArchiveContext

/** Opens a database for the tests of a file, and for each of them an empty archive and an RPC with events. */
export function serveFakeArchive(): void {
  beforeAll(async () => {
    database = await cloneDatabase()
    db = await database.store.database()
  })
  afterAll(() => database.drop())
  beforeEach(async () => {
    await db.execute('TRUNCATE archive_streams, archive_ranges, archive_events CASCADE')
    fake = await startEventRpc()
    const network = openNetwork({ name: 'local', passphrase: PASSPHRASE, rpcUrl: fake.url, pollMs: 100 })
    context = { network, token: CONTRACTS.token, database: async () => db }
  })
  afterEach(() => fake.close())
}
