import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startDelivering } from '#lib/events/delivering.ts'
import { deliverDue } from '#lib/events/delivery.ts'
import { runChore } from '#lib/server/maintenance.ts'
import { type Endpoint, openEndpoint, openStage, type Stage, verify } from './stage.ts'

let stage: Stage
let endpoint: Endpoint
beforeAll(async () => {
  stage = await openStage()
  endpoint = await openEndpoint()
})
afterAll(async () => {
  await endpoint?.close()
  await stage?.close()
})

test('delivers, retries, disables, enables and rotates on each kind of database', async () => {
  const { session, organisation } = await stage.employer()
  const { id, secret } = await stage.hook(session, endpoint.url.replace('127.0.0.1', 'localhost'))
  const batch = randomUUID()
  await stage.happen(organisation, ['batch.created', batch], ['batch.ready', batch], ['contractor.created'])
  endpoint.answer = (response) => response.writeHead(500).end()
  expect(await deliverDue(stage.webhooks)).toBe(2)
  await stage.passPauses()
  endpoint.answer = (response) => response.writeHead(200).end()
  expect(await runChore({ ...stage.running, webhooks: stage.webhooks }, 'webhooks')).toBe(3)
  for (const request of endpoint.received) expect(() => verify(secret, request)).not.toThrow()
  expect(endpoint.types().slice(2)).toEqual(
    expect.arrayContaining(['batch.created', 'batch.ready', 'contractor.created']),
  )
  endpoint.answer = (response) => response.writeHead(410).end()
  await stage.happen(organisation, ['batch.started', batch], ['batch.completed', batch])
  await deliverDue(stage.webhooks)
  expect((await stage.deliveriesOf(id)).map(({ status }) => status).slice(3)).toEqual(['failed', 'held'])
  endpoint.answer = (response) => response.writeHead(200).end()
  expect((await stage.ask('POST', `/webhooks/${id}/test`, { session })).body).toMatchObject({ enabled: true })
  const { body } = await stage.ask('POST', `/webhooks/${id}/secret`, { session })
  const stop = startDelivering({ webhooks: stage.webhooks }, 20)
  await expect.poll(() => endpoint.types().at(-1)).toBe('batch.completed')
  await stop()
  const last = endpoint.received.at(-1)
  if (!last) throw new Error('nothing was received')
  for (const each of [secret, String(body.secret)]) expect(() => verify(each, last)).not.toThrow()
  expect((await stage.ask('GET', `/webhooks/${id}/deliveries`, { session })).body.deliveries).toHaveLength(5)
  expect(await runChore(stage.running, 'deliveries')).toBe(0)
})
