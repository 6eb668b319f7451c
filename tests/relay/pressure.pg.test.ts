import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { relayChannels } from '#drizzle/schema/relay.ts'
import { readClock } from '#lib/db/clock.ts'
import { expectJobPaidOnce } from '../support/paid-once.ts'
import { openRelayService, type RelayService } from './relay-service.ts'
import { SHORT_TIMES } from './short-times.ts'

/** Four more than the network's queue can hold. */
const CHANNELS = 20
const AMOUNTS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]

let fixture: RelayService
beforeAll(async () => {
  fixture = await openRelayService({ channels: CHANNELS, closeMs: 0 })
})
afterAll(() => fixture?.close())

const keepClosing = () => setInterval(fixture.ledger.devnet.closeLedger, 200)

test('resubmits transfers that find no room in the network’s queue, and pays each line once', async () => {
  const { proxy, devnet } = fixture.ledger
  const preparing = keepClosing()
  const jobs = await Promise.all([fixture.engaged(), fixture.engaged()])
  const isCompared = sql`${relayChannels.comparedAt} > ${new Date(await readClock(fixture.db)).toISOString()}::timestamptz`
  await using _relay = await fixture.relay({ times: { ...SHORT_TIMES, validity: 120, longestLease: 60 } })
  // It leases no line before a ledger has closed, and it has compared its channels with that.
  await expect.poll(() => fixture.db.$count(relayChannels, isCompared)).toBe(CHANNELS)
  clearInterval(preparing)
  devnet.closeLedger()
  proxy.calls.clear()
  const posted = await Promise.all(
    jobs.map(async ({ client, payee }) => ({ client, payee, id: await fixture.begin(client, ...AMOUNTS) })),
  )
  // No ledger closes before every channel has sent a transfer.
  await expect.poll(() => proxy.calls.get('sendTransaction')).toBe(CHANNELS)
  const closing = keepClosing()
  const hashes: string[] = []
  try {
    for (const { client, payee, id } of posted) {
      // The amounts are powers of two: the sum shows which of them were paid, and how often.
      const job = await expectJobPaidOnce(fixture, client, id, [payee, 1023n])
      hashes.push(...job.results.map(({ hash }) => hash))
    }
  } finally {
    clearInterval(closing)
  }
  expect(proxy.calls.get('sendTransaction')).toBeGreaterThan(CHANNELS)
  expect(new Set(hashes).size).toBe(2 * AMOUNTS.length)
})
