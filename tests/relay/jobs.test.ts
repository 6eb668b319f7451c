import { afterAll, beforeAll, expect, test } from 'vitest'
import { openWorks, type Works } from './works.ts'

let works: Works
let relay: Awaited<ReturnType<Works['relay']>>
beforeAll(async () => {
  works = await openWorks({ channels: 3 })
  relay = await works.relay()
}, 120_000)
afterAll(async () => {
  await relay?.close()
  await works?.close()
})

test('a job of ten pays its contractors in turn, each exactly what was asked', async () => {
  const client = await works.client()
  const [first, second] = [await works.payee(), await works.payee()]
  await works.hire(client, [first.signer.publicKey(), second.signer.publicKey()])
  const amounts = [1, 2, 4, 8, 16, 32, 64, 128, 256, 9_007_199_254]
  const started = await works.post(client, { amounts })
  expect(started).toMatchObject({ status: 200, body: { status: 'running' } })
  const job = await works.ended(client, String(started.body.jobId))
  expect(job).toMatchObject({ status: 'completed' })
  expect(job.error).toBeUndefined()
  expect(job.results.map(({ i, status }) => [i, status])).toEqual(amounts.map((_, i) => [i, 'SUCCESS']))
  expect(new Set(job.results.map(({ hash }) => hash)).size).toBe(10)
  for (const { hash } of job.results) expect((await works.network.rpc.getTransaction(hash)).status).toBe('SUCCESS')
  expect(await works.received(first)).toBe(1n + 4n + 16n + 64n + 256n)
  expect(await works.received(second)).toBe(2n + 8n + 32n + 128n + 9_007_199_254n)
})
