import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openArchive, readCoverage } from '#lib/archive/history.ts'
import { ingest } from '#lib/archive/ingest.ts'
import { openNetwork } from '#lib/stellar/network.ts'
import { cloneDatabase, type TestDatabase } from '../support/database.ts'
import { startTestLedger, type TestLedger } from '../support/test-ledger.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await cloneDatabase()
})
afterAll(() => database.drop())

test.each([[[0, 2]], [[2, 0]]])('stays at the head while one node of two lags: %j', async (lag) => {
  const ledger: TestLedger = await startTestLedger({ closeMs: 100, lag })
  try {
    const db = await database.store.database()
    await db.execute('TRUNCATE archive_streams, archive_ranges, archive_events CASCADE')
    const { network, devnet } = ledger
    const service = openNetwork({ name: 'local', passphrase: network.passphrase, rpcUrl: devnet.rpcUrl, pollMs: 50 })
    const context = { network: service, token: network.token, database: async () => db }
    const latest = async () => (await network.rpc.getHealth()).latestLedger
    const begin = await latest()
    for (let round = 0; round < 25; round += 1) {
      await ingest(context, { maxMs: 1_000 }).catch(() => undefined)
      await setTimeout(100)
    }
    const archive = await openArchive(db, network.token)
    const { ingestedThrough, gaps } = archive ? await readCoverage(db, archive) : { ingestedThrough: 0, gaps: 0 }
    const behind = (await latest()) - ingestedThrough
    expect([ingestedThrough > begin + 10, behind < 15, gaps]).toEqual([true, true, 0])
  } finally {
    await ledger.close()
  }
})
