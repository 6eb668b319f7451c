import { afterAll, beforeAll, expect, test } from 'vitest'
import { relayChannels, relayLines } from '#drizzle/schema/relay.ts'
import { insertRows, itemRow, jobRow } from '#lib/cli/seed/rows.ts'
import { leaseLine } from '#lib/relay/lease.ts'
import { type Channel, RELAY_TIMES, type Relay } from '#lib/relay/relay.ts'
import { cloneDatabase, type TestDatabase } from '../support/database.ts'

const ADDRESSES = Array.from({ length: 10 }, (_, n) => `G${n}`)
const ROUNDS = 10

let clone: TestDatabase
beforeAll(async () => {
  clone = await cloneDatabase()
})
afterAll(() => clone?.drop())

test('channels that look for a line at once lease one each, and none of them twice', async () => {
  const db = await clone.store.database()
  const channels = ADDRESSES.map((address) => ({ token: 'C', address, seenAt: new Date() }))
  await db.insert(relayChannels).values(channels)
  const relay = { database: async () => db, token: 'C', relayKey: 'key', times: RELAY_TIMES } as Relay
  for (let round = 0; round < ROUNDS; round += 1) {
    const job = jobRow({ userSub: `user ${round}`, relayKey: `key ${round}` })
    await insertRows(db, { jobs: [job], items: channels.map((_, position) => itemRow({ job: job.id, position })) })
    const leased = await Promise.all(
      channels.map(({ address }) =>
        leaseLine({ ...relay, relayKey: job.relayKey }, { address } as Channel, { held: undefined, canRun: true }),
      ),
    )
    expect(new Set(leased.map((line) => line?.position))).toEqual(new Set(channels.keys()))
    await db.update(relayLines).set({ leasedUntil: null })
  }
})
