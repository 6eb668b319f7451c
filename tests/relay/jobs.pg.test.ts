import { afterAll, beforeAll, expect, test } from 'vitest'
import { fieldsOf } from '../support/directory.ts'
import { openRelayService, type RelayService } from './relay-service.ts'

let fixture: RelayService
let relay: Awaited<ReturnType<RelayService['relay']>>
beforeAll(async () => {
  fixture = await openRelayService({ channels: 3 })
  relay = await fixture.relay()
})
afterAll(async () => {
  await relay?.close()
  await fixture?.close()
})

test('pays the contractors of a job of ten in turn, each the exact amounts', async () => {
  const client = await fixture.client()
  const [first, second] = [await fixture.payee(), await fixture.payee()]
  await fixture.hire(client, [first.signer.publicKey(), second.signer.publicKey()])
  const amounts = [1, 2, 4, 8, 16, 32, 64, 128, 256, 9_007_199_254]
  const started = await fixture.post(client, { amounts })
  expect(started).toMatchObject({ status: 200, body: { status: 'running' } })
  const job = await fixture.ended(client, String(started.body.jobId))
  expect(job).toMatchObject({ status: 'completed' })
  expect(job.error).toBeUndefined()
  expect(job.results.map(({ i, status }) => [i, status])).toEqual(amounts.map((_, i) => [i, 'SUCCESS']))
  expect(new Set(job.results.map(({ hash }) => hash)).size).toBe(10)
  for (const { hash } of job.results)
    expect((await fixture.ledger.network.rpc.getTransaction(hash)).status).toBe('SUCCESS')
  expect(await fixture.received(first)).toBe(1n + 4n + 16n + 64n + 256n)
  expect(await fixture.received(second)).toBe(2n + 8n + 32n + 128n + 9_007_199_254n)
})

test('does not pay a contractor who was removed before the job started', async () => {
  const { client, payee: removed } = await fixture.engaged()
  const { session } = client
  const [id] = fieldsOf(await fixture.ask('GET', '/contractors', { session }), 'contractors', 'id')
  expect((await fixture.ask('DELETE', `/contractors/${id}`, { session })).status).toBe(200)
  const kept = await fixture.payee()
  await fixture.hire(client, [kept.address])
  const job = await fixture.ended(client, await fixture.begin(client, 3, 4))
  expect(job).toMatchObject({ status: 'completed' })
  expect([await fixture.received(removed), await fixture.received(kept)]).toEqual([0n, 7n])
})
