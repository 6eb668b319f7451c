import { afterAll, expect, test } from 'vitest'
import { fieldsOf } from '../support/directory.ts'
import { expectJobPaidOnce } from '../support/paid-once.ts'
import { serveJobs } from './relay-service.ts'

const fixture = await serveJobs({ channels: 3 })
const relay = await fixture.relay()
afterAll(relay.close)

test('pays the contractors of a job of ten in turn, each the exact amounts', async () => {
  const client = await fixture.client()
  const [first, second] = [await fixture.payee(), await fixture.payee()]
  await fixture.hire(client, [first.signer.publicKey(), second.signer.publicKey()])
  const amounts = [1, 2, 4, 8, 16, 32, 64, 128, 256, 9_007_199_254]
  const started = await fixture.post(client, { amounts })
  expect(started).toMatchObject({ status: 200, body: { status: 'running' } })
  const ofFirst = 1n + 4n + 16n + 64n + 256n
  const ofSecond = 2n + 8n + 32n + 128n + 9_007_199_254n
  const jobId = String(started.body.jobId)
  const job = await expectJobPaidOnce(fixture, client, jobId, [first, ofFirst], [second, ofSecond])
  expect(job.results.map(({ i }) => i)).toEqual(amounts.map((_, index) => index))
})

test('does not pay a contractor who was removed before the job started', async () => {
  const { client, payee: removed } = await fixture.engaged()
  const { session } = client
  const [id] = fieldsOf(await fixture.ask('GET', '/contractors', { session }), 'contractors', 'id')
  expect((await fixture.ask('DELETE', `/contractors/${id}`, { session })).status).toBe(200)
  const kept = await fixture.payee()
  await fixture.hire(client, [kept.address])
  await expectJobPaidOnce(fixture, client, await fixture.begin(client, 3, 4), [removed, 0n], [kept, 7n])
})
