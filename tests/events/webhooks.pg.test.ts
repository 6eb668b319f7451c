import { randomUUID } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import { eq } from 'drizzle-orm'
import { SMTPServer } from 'smtp-server'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { auditLog } from '#drizzle/schema/audit.ts'
import { webhookDeliveries, webhooks } from '#drizzle/schema/webhooks.ts'
import { readAttention, readAttentionOf } from '#lib/dashboard/overview.ts'
import { listFailures, listWebhookLines } from '#lib/dashboard/webhooks.ts'
import { deliverDue } from '#lib/events/delivery.ts'
import { EVENT_TYPES } from '#lib/events/event.ts'
import { MAX_WEBHOOKS } from '#lib/events/webhooks.ts'
import { captureLog } from '../support/console.ts'
import { openEndpoint, openStage, type Stage } from './stage.ts'

const URL_OF = 'https://erp.example/events?key=1'

let mails: { to: string[]; raw: string }[] = []
let refusal: Error | undefined
let smtp: SMTPServer
let stage: Stage
let session: string
let organisation: string
beforeAll(async () => {
  smtp = new SMTPServer({
    disabledCommands: ['STARTTLS', 'AUTH'],
    onRcptTo: (_address, _session, callback) => callback(refusal),
    onData: (stream, { envelope }, callback) => {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        mails.push({ to: envelope.rcptTo.map(({ address }) => address), raw: Buffer.concat(chunks).toString() })
        callback()
      })
    },
  })
  await new Promise<void>((resolve) => smtp.listen(0, '127.0.0.1', () => resolve()))
  const { port } = smtp.server.address() as AddressInfo
  stage = await openStage({ SMTP_URL: `smtp://127.0.0.1:${port}`, MAIL_FROM: 'pay@pay.example' })
})
afterAll(async () => {
  await stage?.close()
  await new Promise<void>((resolve) => smtp.close(() => resolve()))
})
beforeEach(async () => {
  captureLog()
  mails = []
  refusal = undefined
  const employer = await stage.employer()
  session = employer.session
  organisation = employer.organisation
})

afterEach(() => {
  vi.restoreAllMocks()
})

const ask = (method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown, as = session) =>
  stage.ask(method, path, { session: as, body })
const codeOf = async (...request: Parameters<typeof ask>) => {
  const { status, body } = await ask(...request)
  return [status, body.code]
}

test('shows the secret once, and lists the webhooks of an organisation without it', async () => {
  const { status, body } = await ask('POST', '/webhooks', { url: URL_OF, types: ['payout.paid', 'payout.paid'] })
  expect(status).toBe(200)
  const { secret, ...webhook } = body
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
  expect(webhook).toMatchObject({ url: URL_OF, types: ['payout.paid'] })
  const { body: every } = await ask('POST', '/webhooks', { url: URL_OF })
  expect(Object.keys(every)).toEqual(['id', 'url', 'createdAt', 'secret'])
  expect(every.secret).not.toBe(secret)
  const { secret: _, ...other } = every
  expect((await ask('GET', '/webhooks')).body).toEqual({ webhooks: [other, webhook] })
  expect((await ask('GET', '/webhooks', undefined, (await stage.employer()).session)).body).toEqual({ webhooks: [] })
  const rows = await stage.db.select().from(webhooks).where(eq(webhooks.organisation, organisation))
  expect(JSON.stringify(rows)).not.toContain(String(secret).slice('whsec_'.length))
  const [entry] = await stage.db
    .select()
    .from(auditLog)
    .where(eq(auditLog.subjectId, String(webhook.id)))
  expect(entry).toMatchObject({ action: 'webhook.created', detail: { host: 'erp.example' } })
})

test.each([
  [{}, 'url-required'],
  [{ url: 7 }, 'url-invalid'],
  [{ url: '' }, 'url-invalid'],
  [{ url: 'erp' }, 'url-invalid'],
  [{ url: `https://erp.example/${'x'.repeat(2_000)}` }, 'url-invalid'],
  [{ url: 'https://erp.example/\n' }, 'url-invalid'],
  [{ url: 'http://erp.example/' }, 'url-invalid'],
  [{ url: 'https://ada:pw@erp.example/' }, 'url-invalid'],
  [{ url: 'https://erp.example/#x' }, 'url-invalid'],
  [{ url: 'https://10.0.0.1/' }, 'url-invalid'],
  [{ url: 'https://internal.example/' }, 'url-invalid'],
  [{ url: URL_OF, types: [] }, 'types-invalid'],
  [{ url: URL_OF, types: 'payout.paid' }, 'types-invalid'],
  [{ url: URL_OF, types: ['payout.lost'] }, 'types-invalid'],
  [{ url: URL_OF, types: [...EVENT_TYPES, 'payout.paid'] }, 'types-invalid'],
])('refuses %o as %s', async (body, code) => {
  stage.resolves.set('internal.example', '192.168.0.10')
  expect(await codeOf('POST', '/webhooks', body)).toEqual([400, code])
})

test('adds at most 10 webhooks to an organisation, also at the same time', async () => {
  const requests = Array.from({ length: MAX_WEBHOOKS + 2 }, () => codeOf('POST', '/webhooks', { url: URL_OF }))
  const answers = await Promise.all(requests)
  expect(answers.filter(([status]) => status === 200)).toHaveLength(MAX_WEBHOOKS)
  expect(answers.filter(([, code]) => code === 'webhooks-full')).toHaveLength(2)
  const { body } = await ask('GET', '/webhooks')
  const [first] = body.webhooks as { id: string }[]
  expect((await ask('DELETE', `/webhooks/${first?.id}`)).body).toEqual({ id: first?.id })
  expect(await codeOf('POST', '/webhooks', { url: URL_OF })).toEqual([200, undefined])
})

test('adds one webhook for requests with the same Idempotency-Key, and shows its secret again', async () => {
  const sent = { session, body: { url: URL_OF }, headers: { 'Idempotency-Key': 'key-1' } }
  const first = await stage.ask('POST', '/webhooks', sent)
  const again = await stage.ask('POST', '/webhooks', sent)
  expect([first.status, again.status]).toEqual([200, 200])
  expect(again.body).toEqual(first.body)
  expect(again.headers.get('Idempotency-Replayed')).toBe('true')
  expect((await ask('GET', '/webhooks')).body.webhooks).toHaveLength(1)
  await ask('DELETE', `/webhooks/${first.body.id}`)
  const gone = await stage.ask('POST', '/webhooks', sent)
  expect([gone.status, gone.body.code]).toEqual([404, 'webhook-not-found'])
})

test('responds with 404 to what is not there, or belongs to another organisation', async () => {
  const { id } = await stage.hook(session, URL_OF)
  await stage.happen(organisation, ['payout.paid'])
  stage.resolves.set('erp.example', '10.0.0.1')
  await deliverDue(stage.webhooks)
  const [delivery] = await stage.deliveriesOf(id)
  const { session: other } = await stage.employer()
  const { id: own } = await stage.hook(session, URL_OF.replace('erp.', 'crm.'))
  for (const [as, hook] of [
    [other, id],
    [session, delivery?.id],
    [session, 'nonsense'],
  ] as const) {
    const found = (...request: ['GET' | 'POST' | 'DELETE', string]) => codeOf(request[0], request[1], undefined, as)
    const notFound = [404, 'webhook-not-found']
    expect(await found('DELETE', `/webhooks/${hook}`)).toEqual(notFound)
    expect(await found('POST', `/webhooks/${hook}/test`)).toEqual(notFound)
    expect(await found('POST', `/webhooks/${hook}/secret`)).toEqual(notFound)
    expect(await found('GET', `/webhooks/${hook}/deliveries`)).toEqual(notFound)
    expect(await found('POST', `/webhooks/${hook}/deliveries/${delivery?.id}/redeliver`)).toEqual(notFound)
  }
  for (const path of [`${own}/deliveries/${delivery?.id}`, `${id}/deliveries/${id}`, `${id}/deliveries/x`])
    expect(await codeOf('POST', `/webhooks/${path}/redeliver`)).toEqual([404, 'delivery-not-found'])
  stage.resolves.delete('erp.example')
})

test('lists deliveries newest first, in pages, and sends one again', async () => {
  const endpoint = await openEndpoint()
  const { id } = await stage.hook(session, endpoint.url)
  await stage.happen(organisation, ['payout.paid'], ['payout.failed'], ['run.completed'])
  await deliverDue(stage.webhooks)
  const { body, headers } = await ask('GET', `/webhooks/${id}/deliveries?limit=2`)
  const page = body.deliveries as Record<string, string>[]
  expect(page.map(({ type }) => type)).toEqual(['run.completed', 'payout.failed'])
  expect(page[0]).toMatchObject({ status: 'delivered', attempts: 1, responseStatus: 204, response: '' })
  expect(Object.keys(page[0] ?? {})).not.toContain('due')
  const [, next = ''] = /<(\?.*)>/.exec(headers.get('link') ?? '') ?? []
  const { body: rest } = await ask('GET', `/webhooks/${id}/deliveries${next}`)
  expect(rest.deliveries).toMatchObject([{ type: 'payout.paid' }])
  expect(await codeOf('GET', `/webhooks/${id}/deliveries?limit=0`)).toEqual([400, 'limit-invalid'])
  expect(await codeOf('GET', `/webhooks/${id}/deliveries?type=x`)).toEqual([400, 'query-unknown'])
  const before = endpoint.received.map(({ headers }) => headers['webhook-id'])
  const path = `/webhooks/${id}/deliveries/${page[0]?.id}/redeliver`
  expect((await ask('POST', path)).body).toMatchObject({ status: 'waiting', attempts: 0 })
  await deliverDue(stage.webhooks)
  expect(endpoint.received).toHaveLength(4)
  expect(before).toContain(endpoint.received[3]?.headers['webhook-id'])
  endpoint.answer = (response) => response.writeHead(410).end()
  await ask('POST', path)
  await deliverDue(stage.webhooks)
  expect(await codeOf('POST', path)).toEqual([409, 'webhook-disabled'])
  await endpoint.close()
})

test('sends what waits for its next attempt once a test succeeds', async () => {
  const endpoint = await openEndpoint()
  const { session, organisation } = await stage.employer()
  const { id } = await stage.hook(session, endpoint.url)
  const batch = randomUUID()
  await stage.happen(organisation, ['payout.paid', batch], ['payout.failed', batch])
  endpoint.answer = (response) => response.writeHead(503).end()
  await deliverDue(stage.webhooks)
  // The second event waits for the first, also if it is redelivered.
  const [, second] = await stage.deliveriesOf(id)
  const path = `/webhooks/${id}/deliveries/${second?.id}/redeliver`
  const { body } = await stage.ask('POST', path, { session })
  expect(body).toMatchObject({ status: 'waiting' })
  expect(body.due).toBeUndefined()
  expect(await deliverDue(stage.webhooks)).toBe(0)
  endpoint.answer = (response) => response.writeHead(204).end()
  await stage.ask('POST', `/webhooks/${id}/test`, { session })
  expect(await deliverDue(stage.webhooks)).toBe(2)
  expect(endpoint.types().slice(-2)).toEqual(['payout.paid', 'payout.failed'])
  await endpoint.close()
})

test('tests an endpoint, and says what came back', async () => {
  const endpoint = await openEndpoint()
  const { id } = await stage.hook(session, endpoint.url)
  endpoint.answer = (response) => response.writeHead(500).end('no such table')
  const { body } = await ask('POST', `/webhooks/${id}/test`)
  expect(body).toMatchObject({ delivered: false, error: 'status', responseStatus: 500, response: 'no such table' })
  expect(endpoint.types()).toEqual(['webhook.test'])
  expect(await stage.deliveriesOf(id)).toEqual([])
  await endpoint.close()
  expect((await ask('POST', `/webhooks/${id}/test`)).body).toMatchObject({ delivered: false, error: 'unreachable' })
})

test('shows the operator what fails and why, until the employer has it sent again', async () => {
  const endpoint = await openEndpoint()
  const { session, organisation } = await stage.employer()
  const { id } = await stage.hook(session, `${endpoint.url}/hunter2`)
  const batch = randomUUID()
  endpoint.answer = (response) => response.writeHead(503).end()
  await stage.happen(organisation, ['payout.paid', batch], ['payout.failed', batch])
  await deliverDue(stage.webhooks)
  const { host } = new URL(endpoint.url)
  const failure = { type: 'payout.paid', host, attempts: 1, why: 'it responded with 503', status: 'waiting' }
  expect(await listFailures(stage.db, organisation)).toEqual([
    { ...failure, id: expect.any(String), attemptedAt: expect.any(Date), due: expect.any(Date) },
  ])
  await stage.db.update(webhookDeliveries).set({ attempts: 13 }).where(eq(webhookDeliveries.webhook, id))
  await stage.passPauses()
  await deliverDue(stage.webhooks)
  expect(await listFailures(stage.db, organisation)).toMatchObject([
    { ...failure, attempts: 14, status: 'failed', due: null },
  ])
  endpoint.answer = (response) => response.writeHead(204).end()
  await stage.ask('POST', `/webhooks/${id}/test`, { session })
  const [first] = await stage.deliveriesOf(id)
  await stage.ask('POST', `/webhooks/${id}/deliveries/${first?.id}/redeliver`, { session })
  expect(await listFailures(stage.db, organisation)).toMatchObject([{ ...failure, attempts: 0, status: 'waiting' }])
  const entries = await stage.db.select().from(auditLog).where(eq(auditLog.subjectId, id))
  const entry = { action: 'webhook.redelivered', detail: { host, type: 'payout.paid' } }
  expect(entries).toContainEqual(expect.objectContaining(entry))
  await deliverDue(stage.webhooks)
  expect(await listFailures(stage.db, organisation)).toEqual([])
  expect(await listFailures(stage.db, randomUUID())).toEqual([])
  await endpoint.close()
})

test('mails the employer about a disabled endpoint, and lists it in the dashboard until it is deleted', async () => {
  const endpoint = await openEndpoint()
  const user = await stage.user('auth0|grace', 'grace@acme.example')
  const { body: me } = await stage.ask('PATCH', '/me', { session: user, body: { orgName: 'Acme' } })
  const { orgId } = me.employer as { orgId: string }
  const { id } = await stage.hook(user, `${endpoint.url}/hook?key=hunter2`)
  const { host } = new URL(endpoint.url)
  const now = new Date()
  expect(await listWebhookLines(stage.db, orgId)).toMatchObject([{ id, host, deliveredAt: null, waiting: 0 }])
  endpoint.answer = (response) => response.writeHead(410).end()
  await stage.happen(orgId, ['payout.paid'])
  refusal = Object.assign(new Error('later'), { responseCode: 451 })
  await deliverDue(stage.webhooks)
  expect(mails).toEqual([])
  // It was not sent, and is tried again after ten minutes.
  refusal = undefined
  await deliverDue(stage.webhooks)
  expect(mails).toEqual([])
  await stage.db.update(webhooks).set({ noticeDue: now }).where(eq(webhooks.id, id))
  await deliverDue(stage.webhooks)
  expect(mails.map(({ to }) => to)).toEqual([['grace@acme.example']])
  expect(mails[0]?.raw).toContain(host)
  expect(mails[0]?.raw).not.toContain('hunter2')
  await deliverDue(stage.webhooks)
  expect(mails).toHaveLength(1)
  const { items } = await readAttention(stage.db, now)
  const item = items.find(({ key }) => key === `webhookDisabled ${id}`)
  expect(item).toMatchObject({ what: `the webhook at ${host} is disabled`, page: `/organisations/${orgId}#webhooks` })
  expect(JSON.stringify(items)).not.toContain('hunter2')
  expect(await readAttentionOf(stage.db, now, { organisation: orgId })).toMatchObject([{ key: item?.key }])
  expect((await listWebhookLines(stage.db, orgId))[0]?.disabledAt).toBeInstanceOf(Date)
  await stage.ask('DELETE', `/webhooks/${id}`, { session: user })
  expect(await readAttentionOf(stage.db, now, { organisation: orgId })).toEqual([])
  expect(await stage.db.$count(webhookDeliveries, eq(webhookDeliveries.webhook, id))).toBe(0)
  await endpoint.close()
})

test('dissolves an organisation with a webhook and nothing else when its person accepts an invite', async () => {
  const { address } = await stage.employer()
  const invited = await stage.wallet(address)
  const { id } = await stage.hook(invited, URL_OF)
  const { body } = await ask('POST', '/contractors', { name: 'Ada', address })
  const { body: invite } = await ask('POST', `/contractors/${body.id}/invite`)
  const token = String(invite.inviteUrl).split('/').at(-1)
  expect((await ask('POST', `/invites/${token}/accept`, undefined, invited)).status).toBe(200)
  expect(await stage.hookOf(id)).toBeUndefined()
  // Now it is a contractor, and no employer.
  expect(await codeOf('GET', '/webhooks', undefined, invited)).toEqual([403, 'employer-required'])
  expect(await codeOf('POST', '/webhooks', { url: URL_OF }, invited)).toEqual([403, 'employer-required'])
  expect(await codeOf('DELETE', `/webhooks/${id}`, undefined, invited)).toEqual([403, 'employer-required'])
})
