import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'
import type { TestNetwork } from '#lib/cli/client/participants.ts'
import type { WebhookEvent } from '#lib/sdk/webhooks.ts'
import type { Figure } from './directory.ts'
import { percentile } from './load.ts'

/** Records when payments arrive at an endpoint, and when ledgers close. */
export async function openArrivals(network: TestNetwork) {
  /** when the event of each paying transaction arrived (ms) */
  const arrivals = new Map<string, number>()
  const server = createServer(async (request, response) => {
    const { data }: WebhookEvent = JSON.parse(await text(request))
    if (data.txHash !== undefined && !arrivals.has(data.txHash)) arrivals.set(data.txHash, performance.now())
    response.writeHead(204).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  /** when each ledger was first seen (ms) */
  const closes = new Map<number, number>()
  let isOpen = true
  const watch = async () => {
    while (isOpen) {
      const { sequence } = await network.rpc.getLatestLedger()
      if (!closes.has(sequence)) closes.set(sequence, performance.now())
      await setTimeout(10)
    }
  }
  const watching = watch()
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/events`,
    /** The time from the close of its ledger to the arrival of each payment's event. */
    measure: async (hashes: readonly string[]): Promise<Figure> => {
      while (!hashes.every((hash) => arrivals.has(hash))) await setTimeout(100)
      const times = await Promise.all(
        hashes.map(async (hash) => {
          const record = await network.rpc.getTransaction(hash)
          const closed = record.status === 'SUCCESS' ? closes.get(record.ledger) : undefined
          return (arrivals.get(hash) ?? Number.NaN) - (closed ?? Number.NaN)
        }),
      )
      times.sort((one, other) => one - other)
      const [half, most, last] = [0.5, 0.99, 1].map((share) => (percentile(times, share) / 1000).toFixed(2))
      const found = `p50 ${half} s, p99 ${most} s, last ${last} s of ${times.length}`
      return { name: 'from a ledger’s close to a webhook’s arrival', found, goal: 'p99 under 3 s' }
    },
    close: async () => {
      isOpen = false
      await watching
      server.close()
    },
  }
}
