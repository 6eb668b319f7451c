import { afterAll, beforeAll, expect, test } from 'vitest'
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

test('resubmits transfers that find no room in the network’s queue, and pays each item once', async () => {
  const { network, proxy, devnet } = fixture.ledger
  const preparing = keepClosing()
  const jobs = await Promise.all(
    [0, 1].map(async () => {
      const { client, payee } = await fixture.engaged()
      return { client, payee }
    }),
  )
  await using relay = await fixture.relay({ times: { ...SHORT_TIMES, validity: 120, patience: 60 } })
  // It takes no item before a ledger has closed.
  const takesItems = async () => (await (await fetch(`${relay.url}/health`)).json()).ok
  await expect.poll(takesItems, { timeout: 60_000 }).toBe(true)
  clearInterval(preparing)
  devnet.closeLedger()
  proxy.calls.clear()
  const posted = await Promise.all(
    jobs.map(async ({ client, payee }) => {
      const { jobId } = (await fixture.post(client, { amounts: AMOUNTS })).body
      return { client, payee, id: String(jobId) }
    }),
  )
  // No ledger closes before every channel has sent a transfer.
  await expect.poll(() => proxy.calls.get('sendTransaction')).toBe(CHANNELS)
  const closing = keepClosing()
  const hashes: string[] = []
  try {
    for (const { client, payee, id } of posted) {
      const job = await fixture.ended(client, id)
      expect(job).toMatchObject({ status: 'completed', results: AMOUNTS.map(() => ({ status: 'SUCCESS' })) })
      hashes.push(...job.results.map(({ hash }) => hash))
      // The amounts are powers of two: the sum shows which of them were paid, and how often.
      expect(await fixture.received(payee)).toBe(1023n)
    }
  } finally {
    clearInterval(closing)
  }
  expect(proxy.calls.get('sendTransaction')).toBeGreaterThan(CHANNELS)
  const statuses = await Promise.all(hashes.map(async (hash) => (await network.rpc.getTransaction(hash)).status))
  expect(statuses).toEqual(hashes.map(() => 'SUCCESS'))
  expect(new Set(hashes).size).toBe(2 * AMOUNTS.length)
})
