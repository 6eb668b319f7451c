import { randomUUID } from 'node:crypto'
import { eq, sql } from 'drizzle-orm'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { auditLog } from '#drizzle/schema/audit.ts'
import { webhookDeliveries, webhooks } from '#drizzle/schema/webhooks.ts'
import { openStore } from '#lib/db/connection.ts'
import { startDelivering } from '#lib/events/delivering.ts'
import { ATTEMPTS, deliverDue, pauseAfter } from '#lib/events/delivery.ts'
import { purgeDeliveries } from '#lib/events/delivery-list.ts'
import { postTo } from '#lib/events/post.ts'
import { captureLog } from '../support/console.ts'
import { type Endpoint, openEndpoint, openStage, type Stage, verify } from './stage.ts'

let stage: Stage
let endpoint: Endpoint
let session: string
let organisation: string
beforeAll(async () => {
  stage = await openStage()
})
afterAll(() => stage?.close())
beforeEach(async () => {
  captureLog()
  endpoint = await openEndpoint()
  const employer = await stage.employer()
  session = employer.session
  organisation = employer.organisation
})
afterEach(async () => {
  vi.restoreAllMocks()
  await endpoint.close()
  await stage.db.delete(webhooks)
})

const deliver = () => deliverDue(stage.webhooks)
const statuses = async (id: string) => (await stage.deliveriesOf(id)).map(({ status }) => status)

test('delivers events signed by the secret, in the form of Standard Webhooks', async () => {
  const { id, secret } = await stage.hook(session, endpoint.url)
  await stage.happen(organisation, ['payout.paid', randomUUID()])
  expect(await deliver()).toBe(1)
  const [request] = endpoint.received
  if (!request) throw new Error('nothing was received')
  expect(verify(secret, request)).toMatchObject({ type: 'payout.paid', data: { status: 'ready' } })
  const event = JSON.parse(request.body)
  expect(Object.keys(event)).toEqual(['id', 'type', 'createdAt', 'data'])
  expect(event.id).toMatch(/^\d+-(f00d){4}$/)
  expect(request.headers).toMatchObject({ 'webhook-id': event.id, 'content-type': 'application/json' })
  expect(request.headers['user-agent']).toMatch(/^confidential-payroll\/\d/)
  expect(() => verify(secret, { ...request, body: request.body.replace('ready', 'paid') })).toThrow()
  expect(await stage.deliveriesOf(id)).toMatchObject([{ status: 'delivered', responseStatus: 204, attempts: 1 }])
  expect(await deliver()).toBe(0)
})

test('delivers only the types that were asked for, and only what happens after the webhook was added', async () => {
  await stage.happen(organisation, ['payout.paid'])
  const { id } = await stage.hook(session, endpoint.url, ['payout.failed', 'batch.created'])
  await stage.happen(organisation, ['payout.paid'], ['payout.failed'], ['run.failed'])
  await stage.happen((await stage.employer()).organisation, ['payout.failed'])
  await deliver()
  expect(endpoint.types()).toEqual(['payout.failed'])
  expect(await stage.deliveriesOf(id)).toHaveLength(1)
})

test('delivers the events of a batch in their order, and others meanwhile', async () => {
  const { id } = await stage.hook(session, endpoint.url)
  const [one, other] = [randomUUID(), randomUUID()]
  const of = (batch: string) => (received: { body: string }) => JSON.parse(received.body).data.batchId === batch
  endpoint.answer = (response, request) => response.writeHead(of(one)(request) ? 500 : 200).end()
  await stage.happen(organisation, ['batch.created', one], ['batch.ready', one], ['batch.created', other])
  await stage.happen(organisation, ['batch.started', one], ['batch.ready', other], ['contractor.created'])
  await deliver()
  expect(endpoint.received.filter(of(one))).toHaveLength(1)
  expect(endpoint.received.filter(of(other)).map(({ body }) => JSON.parse(body).type)).toEqual([
    'batch.created',
    'batch.ready',
  ])
  expect(endpoint.types()).toContain('contractor.created')
  // A later event of the batch, published while an earlier one waits.
  await stage.happen(organisation, ['batch.completed', one])
  endpoint.received.length = 0
  endpoint.answer = (response) => response.writeHead(200).end()
  await deliver()
  expect(endpoint.received).toEqual([])
  await stage.passPauses()
  await deliver()
  expect(endpoint.types()).toEqual(['batch.created', 'batch.ready', 'batch.started', 'batch.completed'])
  expect(new Set(await statuses(id))).toEqual(new Set(['delivered']))
})

test('delivers each event once when two processes deliver at the same time', async () => {
  await stage.hook(session, endpoint.url)
  const batch = randomUUID()
  for (let n = 0; n < 15; n += 1) await stage.happen(organisation, ['payout.paid', batch], ['contractor.updated'])
  const stores = [1, 2].map(() => openStore({ url: stage.database.url }))
  endpoint.answer = (response) => setTimeout(() => response.writeHead(200).end(), 5)
  const counts = await Promise.all(stores.map(({ database }) => deliverDue({ ...stage.webhooks, database })))
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(30)
  const ids = endpoint.received.map(({ headers }) => headers['webhook-id'])
  expect(new Set(ids).size).toBe(30)
  expect(ids).toHaveLength(30)
  const ofBatch = endpoint.received.filter(({ body }) => JSON.parse(body).data.batchId === batch)
  const numbers = ofBatch.map(({ headers }) => Number.parseInt(String(headers['webhook-id']), 10))
  expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
  await Promise.all(stores.map((store) => store.close()))
})

test('delivers again with the same id after a crash between the response and the row', async () => {
  const { id } = await stage.hook(session, endpoint.url)
  await stage.happen(organisation, ['payout.paid', randomUUID()], ['contractor.ready'])
  const gone = openStore({ url: stage.database.url })
  let closing: Promise<void> | undefined
  // From its first response on, the process reaches the database no more.
  endpoint.answer = async (response) => {
    closing ??= gone.close()
    await closing
    response.writeHead(200).end()
  }
  await expect(deliverDue({ ...stage.webhooks, database: gone.database })).rejects.toThrow()
  expect(await statuses(id)).toEqual(['waiting', 'waiting'])
  const first = endpoint.received.map(({ headers }) => headers['webhook-id'])
  endpoint.received.length = 0
  endpoint.answer = (response) => response.writeHead(200).end()
  // The lease of the process that crashed has not expired.
  await deliver()
  for (const each of first) expect(endpoint.received.map(({ headers }) => headers['webhook-id'])).not.toContain(each)
  await stage.passPauses()
  await deliver()
  for (const each of first) expect(endpoint.received.map(({ headers }) => headers['webhook-id'])).toContain(each)
  expect(await statuses(id)).toEqual(['delivered', 'delivered'])
})

test('ignores the outcome of an attempt whose lease has expired and which another process repeats', async () => {
  const { id } = await stage.hook(session, endpoint.url)
  await stage.happen(organisation, ['payout.paid'])
  const late = Promise.withResolvers<void>()
  endpoint.answer = async (response) => {
    const isFirst = endpoint.received.length === 1
    if (isFirst) await late.promise
    response.writeHead(isFirst ? 500 : 200).end()
  }
  const slow = deliver()
  await expect.poll(() => endpoint.received.length).toBe(1)
  await stage.passPauses()
  await deliver()
  late.resolve()
  await slow
  expect(await stage.deliveriesOf(id)).toMatchObject([{ status: 'delivered', attempts: 2, responseStatus: 200 }])
})

test('retries with growing pauses from 5 seconds to a day', async () => {
  const pauses = Array.from({ length: ATTEMPTS - 1 }, (_, n) => pauseAfter(n + 1))
  expect([pauses[0], pauses.at(-1), pauses.length]).toEqual([5, 86_400, 13])
  expect(pauses.every((pause, n) => n === 0 || pause > 2 * (pauses[n - 1] ?? 0))).toBe(true)
  const { id } = await stage.hook(session, endpoint.url)
  await stage.happen(organisation, ['payout.paid'])
  await endpoint.close()
  await deliver()
  const [delivery] = await stage.deliveriesOf(id)
  expect(delivery).toMatchObject({ status: 'waiting', attempts: 1, error: 'unreachable', responseStatus: null })
  const pauseMs = (delivery?.due?.getTime() ?? 0) - (delivery?.attemptedAt?.getTime() ?? 0)
  expect(pauseMs).toBeGreaterThanOrEqual(5_000)
  expect(pauseMs).toBeLessThan(8_000)
  expect(await deliver()).toBe(0)
  endpoint = await openEndpoint(endpoint.port)
  await stage.passPauses()
  await deliver()
  expect(await stage.deliveriesOf(id)).toMatchObject([{ status: 'delivered', attempts: 2, error: null }])
})

test.each([
  [429, '120', 120],
  [503, 'a date', 300],
  [503, '9999999', 86_400],
  [503, 'soon', 5],
  [500, '120', 5],
])('after a %i with Retry-After: %s, waits for %i seconds', async (status, header, seconds) => {
  const { id } = await stage.hook(session, endpoint.url)
  await stage.happen(organisation, ['payout.paid'])
  endpoint.answer = (response) => {
    const at = new Date(Date.now() + 300_000).toUTCString()
    response.writeHead(status, { 'retry-after': header === 'a date' ? at : header }).end('later')
  }
  await deliver()
  const [delivery] = await stage.deliveriesOf(id)
  expect(delivery).toMatchObject({ status: 'waiting', error: 'status', responseStatus: status, response: 'later' })
  const pause = ((delivery?.due?.getTime() ?? 0) - (delivery?.attemptedAt?.getTime() ?? 0)) / 1000
  expect(Math.abs(pause - seconds)).toBeLessThan(4)
})

test('disables an endpoint after 14 attempts, and holds its other events', async () => {
  const { id } = await stage.hook(session, `${endpoint.url}/events/hunter1?key=hunter2`)
  await stage.happen(organisation, ['payout.paid'])
  endpoint.answer = (response) => response.writeHead(500).end()
  await deliver()
  await stage.db
    .update(webhookDeliveries)
    .set({ attempts: ATTEMPTS - 1 })
    .where(eq(webhookDeliveries.webhook, id))
  await stage.happen(organisation, ['payout.failed', randomUUID()])
  await deliver()
  await stage.passPauses()
  await deliver()
  expect(await statuses(id)).toEqual(['failed', 'held'])
  expect(await stage.hookOf(id)).toMatchObject({ disabledReason: 'failing' })
  const entries = await stage.db.select().from(auditLog).where(eq(auditLog.subjectId, id))
  expect(entries.map(({ action }) => action)).toEqual(['webhook.created', 'webhook.disabled'])
  expect(entries.map(({ detail }) => detail.host)).toEqual(Array(2).fill(new URL(endpoint.url).host))
  expect(JSON.stringify(entries)).not.toMatch(/hunter/)
  expect(await deliver()).toBe(0)
})

test('disables an endpoint that responds with 410 at once, and delivers what it missed once a test succeeds', async () => {
  const { id } = await stage.hook(session, endpoint.url)
  const batch = randomUUID()
  await stage.happen(organisation, ['batch.created', batch], ['batch.ready', batch])
  endpoint.answer = (response) => response.writeHead(410).end()
  await deliver()
  expect(await statuses(id)).toEqual(['failed', 'held'])
  expect(await stage.hookOf(id)).toMatchObject({ disabledReason: 'gone' })
  await stage.happen(organisation, ['batch.started', batch])
  expect(await deliver()).toBe(0)
  const attempt = () => stage.ask('POST', `/webhooks/${id}/test`, { session })
  expect((await attempt()).body).toMatchObject({ delivered: false, responseStatus: 410, error: 'status' })
  endpoint.answer = (response) => response.writeHead(200).end()
  expect((await attempt()).body).toMatchObject({ delivered: true, enabled: true, responseStatus: 200 })
  endpoint.received.length = 0
  await deliver()
  expect(endpoint.types()).toEqual(['batch.ready', 'batch.started'])
  expect(await statuses(id)).toEqual(['failed', 'delivered', 'delivered'])
})

test('follows no redirect', async () => {
  const other = await openEndpoint()
  const { id } = await stage.hook(session, endpoint.url)
  await stage.happen(organisation, ['payout.paid'])
  endpoint.answer = (response) => response.writeHead(307, { location: other.url }).end()
  await deliver()
  expect(await stage.deliveriesOf(id)).toMatchObject([{ status: 'waiting', error: 'redirect', responseStatus: 307 }])
  expect(other.received).toEqual([])
  await other.close()
})

test('reads a kilobyte of a response at most, as text that a row and a terminal can take', async () => {
  const { id } = await stage.hook(session, endpoint.url)
  await stage.happen(organisation, ['payout.paid'])
  const closed = Promise.withResolvers<number>()
  endpoint.answer = (response) => {
    let written = 0
    response.on('close', () => closed.resolve(written))
    response.writeHead(200)
    const fill = () => {
      for (; written < 1_000_000_000 && !response.destroyed; written += 65_536)
        if (!response.write(`\0\u001b[2J${'é'.repeat(32_768)}`)) return response.once('drain', fill)
      return response.end()
    }
    fill()
  }
  await deliver()
  const [delivery] = await stage.deliveriesOf(id)
  expect(delivery).toMatchObject({ status: 'delivered', responseStatus: 200 })
  expect(Buffer.byteLength(delivery?.response ?? '')).toBeLessThanOrEqual(1_030)
  expect(delivery?.response).toMatch(/^\[2Jéé/)
  expect(await closed.promise).toBeLessThan(20_000_000)
})

test('does not let a slow endpoint delay another, nor wait for a response for longer than the limit', async () => {
  const slow = await openEndpoint()
  slow.answer = () => undefined
  await stage.hook(session, slow.url)
  await stage.hook(session, endpoint.url)
  await stage.happen(organisation, ...Array(5).fill(['contractor.updated']))
  const stop = startDelivering({ webhooks: stage.webhooks }, 20)
  const isDelivered = eq(webhookDeliveries.status, 'delivered')
  await expect.poll(() => stage.db.$count(webhookDeliveries, isDelivered)).toBe(5)
  expect(endpoint.received).toHaveLength(5)
  expect(slow.received).toHaveLength(2)
  await stop()
  // What was interrupted is given back: the next process attempts it at once, and it counts for nothing.
  const given = await stage.db.select().from(webhookDeliveries).where(sql`status = 'waiting'`)
  expect(given.map(({ attempts, leasedUntil }) => [attempts, leasedUntil])).toEqual(Array(5).fill([0, null]))
  const sent = { rules: stage.webhooks, headers: {}, body: '{}' }
  expect(await postTo(slow.url, { ...sent, timeoutMs: 100 })).toEqual({ error: 'timeout' })
  slow.answer = (response) => response.writeHead(200).write('partial')
  expect(await postTo(slow.url, { ...sent, timeoutMs: 300 })).toMatchObject({ status: 200, text: 'partial' })
  slow.answer = (response) =>
    response.socket?.end('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n')
  expect(await postTo(slow.url, sent)).toEqual({ error: 'unreachable' })
  expect(await postTo(slow.url.replace('http:', 'https:'), sent)).toEqual({ error: 'tls' })
  await slow.close()
})

test('delivers within moments of an event, and again after the database was unreachable', async () => {
  const store = openStore({ url: stage.database.url })
  let isDown = true
  const database = async () => {
    if (isDown) throw new Error('down')
    return await store.database()
  }
  await stage.hook(session, endpoint.url)
  const stop = startDelivering({ webhooks: { ...stage.webhooks, database } }, 20)
  await stage.happen(organisation, ['payout.paid'])
  await new Promise((resolve) => setTimeout(resolve, 100))
  isDown = false
  await expect.poll(() => endpoint.types()).toEqual(['payout.paid'])
  await stage.happen(organisation, ['payout.failed'])
  await expect.poll(() => endpoint.types()).toEqual(['payout.paid', 'payout.failed'])
  await stop()
  await store.close()
})

test('sends nothing to a name that begins to resolve to this computer (DNS rebinding)', async () => {
  const answers = ['93.184.216.34', '127.0.0.1']
  const resolve = async () => [{ address: answers.shift() ?? '127.0.0.1', family: 4 }]
  const rebinding = { ...stage.webhooks, resolve }
  const created = await stage.db
    .insert(webhooks)
    .values({ organisation, url: `https://erp.example:${endpoint.port}/`, keyId: (await anyKeyId()) ?? '', cursor: 0 })
    .returning({ id: webhooks.id })
  await stage.db.update(webhooks).set({ cursor: sql`(select coalesce(max(number), 0) from events)` })
  // The check at the POST sees the public address.
  const { problemOfDestination } = await import('#lib/events/destination.ts')
  expect(await problemOfDestination(rebinding, `https://erp.example:${endpoint.port}/`)).toBeUndefined()
  await stage.happen(organisation, ['payout.paid'])
  await deliverDue(rebinding)
  expect(await stage.deliveriesOf(created[0]?.id ?? '')).toMatchObject([{ error: 'address-refused', attempts: 1 }])
  expect(endpoint.received).toEqual([])
})

/** The id of the service's key, as its endpoints have it. */
async function anyKeyId() {
  const { id } = await stage.hook(session, endpoint.url, ['run.failed'])
  return (await stage.hookOf(id))?.keyId
}

test('sends nothing to a URL that the rules no longer allow', async () => {
  const { id } = await stage.hook(session, endpoint.url)
  await stage.happen(organisation, ['payout.paid'])
  await deliverDue({ ...stage.webhooks, allowsLoopback: false })
  expect(await stage.deliveriesOf(id)).toMatchObject([{ error: 'address-refused' }])
  expect(endpoint.received).toEqual([])
})

test('signs with two secrets for a day after a rotation', async () => {
  const { id, secret } = await stage.hook(session, endpoint.url)
  const { body } = await stage.ask('POST', `/webhooks/${id}/secret`, { session })
  expect(body.secret).not.toBe(secret)
  await stage.happen(organisation, ['payout.paid'])
  await deliver()
  const [during] = endpoint.received
  if (!during) throw new Error('nothing was received')
  expect(String(during.headers['webhook-signature']).split(' ')).toHaveLength(2)
  for (const each of [secret, String(body.secret)]) expect(() => verify(each, during)).not.toThrow()
  await stage.db.update(webhooks).set({ previousUntil: sql`clock_timestamp()` }).where(eq(webhooks.id, id))
  await stage.happen(organisation, ['payout.failed'])
  await deliver()
  const after = endpoint.received[1]
  if (!after) throw new Error('nothing was received')
  expect(() => verify(secret, after)).toThrow()
  expect(() => verify(String(body.secret), after)).not.toThrow()
})

test('leaves the endpoints of another key alone, until their secrets are rotated', async () => {
  const { id, secret } = await stage.hook(session, endpoint.url)
  await stage.happen(organisation, ['payout.paid'])
  expect(await deliverDue({ ...stage.webhooks, secret: new Uint8Array(32) })).toBe(0)
  await stage.db.update(webhooks).set({ keyId: 'of another key' }).where(eq(webhooks.id, id))
  const { body: listed } = await stage.ask('GET', '/webhooks', { session })
  expect(listed).toMatchObject({ webhooks: [{ id, secretVoid: true }] })
  expect(await deliver()).toBe(0)
  const { body } = await stage.ask('POST', `/webhooks/${id}/secret`, { session })
  expect([body.secretVoid, body.previousUntil]).toEqual([undefined, undefined])
  expect(await deliver()).toBe(1)
  const [request] = endpoint.received
  if (!request) throw new Error('nothing was received')
  expect(() => verify(String(body.secret), request)).not.toThrow()
  expect(() => verify(secret, request)).toThrow()
})

test('gives up on an event that was dropped, and goes on with the next of its batch', async () => {
  const { id } = await stage.hook(session, endpoint.url)
  const batch = randomUUID()
  endpoint.answer = (response) => response.writeHead(500).end()
  await stage.happen(organisation, ['batch.created', batch], ['batch.ready', batch])
  await deliver()
  await stage.db.execute(sql`delete from events where type = 'batch.created' and organisation = ${organisation}`)
  endpoint.answer = (response) => response.writeHead(200).end()
  await stage.passPauses()
  await deliver()
  expect((await stage.deliveriesOf(id)).map(({ status, error }) => [status, error])).toEqual([
    ['failed', 'event-gone'],
    ['delivered', null],
  ])
  expect(await stage.hookOf(id)).toMatchObject({ disabledAt: null })
})

test('deletes deliveries after 30 days', async () => {
  const { id } = await stage.hook(session, endpoint.url)
  await stage.happen(organisation, ['payout.paid'], ['payout.failed'])
  await deliver()
  const [old] = await stage.deliveriesOf(id)
  const ago = new Date(Date.now() - 31 * 86_400_000)
  await stage.db
    .update(webhookDeliveries)
    .set({ createdAt: ago })
    .where(eq(webhookDeliveries.id, old?.id ?? ''))
  expect(await purgeDeliveries(stage.db, new Date())).toBe(1)
  expect(await stage.deliveriesOf(id)).toHaveLength(1)
  expect(await purgeDeliveries(stage.db, new Date())).toBe(0)
})
