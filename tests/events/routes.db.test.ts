import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { eq } from 'drizzle-orm'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contractors } from '#drizzle/schema/directory.ts'
import { events } from '#drizzle/schema/events.ts'
import type { Event } from '#lib/events/event.ts'
import { accountOf } from '../support/directory.ts'
import { type Employer, employerNamed, openUser, type User } from '../support/fixtures.ts'
import { openTestService, type TestService } from '../support/test-service.ts'

let service: TestService
let ada: Employer
let eve: Employer
let payee: User
let record: string
beforeAll(async () => {
  service = await openTestService()
  ;[ada, eve] = await Promise.all([employerNamed(service, 'ada'), employerNamed(service, 'eve')])
  const { id, address } = await ada.engage('payee')
  record = id
  payee = await openUser(service, { kind: 'ledger', sub: address })
  // Its first request makes it known.
  await payee.ask('GET', '/me')
  await service.db
    .update(contractors)
    .set({ linkedKind: 'ledger', linkedSub: address, status: 'ready' })
    .where(eq(contractors.id, id))
})
afterAll(() => service.close())

async function list(by: User, query = ''): Promise<Event[]> {
  const { status, body } = await by.ask<{ events: Event[] }>('GET', `/events${query}`)
  expect(status).toBe(200)
  return body.events
}

/** A batch of ada's with one payout, by the API. */
async function prepare(): Promise<{ batch: string; payout: string }> {
  const { body: batch } = await ada.ask<{ id: string }>('POST', '/batches', { name: 'March' })
  const instructions = [{ contractorId: record, encryptedAmount: 'sealed' }]
  const { body } = await ada.ask<{ payouts: { id: string }[] }>('POST', `/batches/${batch.id}/instructions`, {
    instructions,
  })
  await ada.ask('POST', `/batches/${batch.id}/ready`)
  return { batch: batch.id, payout: body.payouts[0]?.id ?? '' }
}

test('tells an employer what has happened, in order, with ids to continue from', async () => {
  const before = (await list(ada)).at(-1)?.id
  const { batch, payout } = await prepare()
  const told = await list(ada, before === undefined ? '' : `?after=${before}`)
  const about = { payoutId: payout, batchId: batch, contractorId: record }
  expect(told.map(({ type, data }) => [type, data])).toEqual([
    ['batch.created', { batchId: batch, status: 'draft' }],
    ['payout.created', { ...about, status: 'draft' }],
    ['batch.ready', { batchId: batch, status: 'ready' }],
    ['payout.ready', { ...about, status: 'ready' }],
  ])
  expect(await list(ada, `?after=${told[1]?.id}`)).toEqual(told.slice(2))
  expect(await list(ada, `?after=${told[3]?.id}`)).toEqual([])
  expect(await list(ada, `?after=${told[0]?.id}&limit=1`)).toEqual([told[1]])
  expect(await list(ada, `?after=${told[0]?.id}&type=batch.ready,payout.ready`)).toEqual(told.slice(2))
  expect(await list(ada, `?after=${told[0]?.id}&from=2999-01-01`)).toEqual([])
})

test('tells a contractor of its own payouts only, and strangers nothing', async () => {
  const { payout } = await prepare()
  const told = await list(payee)
  expect(told.every(({ data }) => data.contractorId === record && data.payoutId !== undefined)).toBe(true)
  expect(told.filter(({ data }) => data.payoutId === payout).map(({ type }) => type)).toEqual([
    'payout.created',
    'payout.ready',
  ])
  expect((await list(eve)).filter(({ data }) => data.payoutId !== undefined)).toEqual([])
})

test('refuses an id that it does not have, and says where to begin', async () => {
  await prepare()
  const [oldest, second] = await list(ada)
  const number = second?.id.split('-')[0]
  const gone = [`${number}-0000000000000000`, '999999999-0123456789abcdef', 'nonsense', `${oldest?.id}0`]
  for (const after of gone) {
    const { status, body } = await ada.ask('GET', `/events?after=${after}`)
    expect([after, status, body]).toMatchObject([after, 410, { code: 'events-gone', oldest: oldest?.id }])
  }
  // Another organisation's event is as unknown; there is nothing to begin with.
  const session = await service.user(randomUUID())
  const strange = await service.ask('GET', `/events?after=${oldest?.id}`, { session })
  expect(strange.body).toMatchObject({ code: 'events-gone' })
  // A database that was restored numbers on, and its ids differ.
  const [restored] = await service.db
    .delete(events)
    .where(eq(events.number, Number(number)))
    .returning()
  if (!restored) throw new Error('no event')
  await service.db.insert(events).values({ ...restored, token: 'f'.repeat(16) })
  expect((await ada.ask('GET', `/events?after=${second?.id}`)).body).toMatchObject({ code: 'events-gone' })
})

test.each([
  ['?limit=0', 'limit-invalid'],
  ['?limit=501', 'limit-invalid'],
  ['?wait=26', 'wait-invalid'],
  ['?wait=x', 'wait-invalid'],
  ['?type=payout.paid,payout.lost', 'type-invalid'],
  ['?from=yesterday', 'from-invalid'],
  [`?after=${'9'.repeat(101)}`, 'after-invalid'],
  ['?afterwards=1', 'query-unknown'],
])('refuses %s', async (query, code) => {
  expect(await ada.ask('GET', `/events${query}`)).toMatchObject({ status: 400, body: { code } })
})

test('waits for the next event, and answers with it', async () => {
  const last = (await list(ada)).at(-1)?.id
  const waiting = list(ada, `?after=${last}&wait=25`)
  const { batch } = await prepare()
  expect((await waiting)[0]).toMatchObject({ type: 'batch.created', data: { batchId: batch } })
})

test('shows a user who waits what it may see by then', async () => {
  const fresh = await openUser(service, { kind: 'ledger', sub: accountOf(73_001) })
  await fresh.ask('GET', '/me')
  const first = list(fresh, '?wait=20')
  await setTimeout(100)
  const { body } = await fresh.ask<{ id: string }>('POST', '/contractors', { name: 'First' })
  expect((await first).map(({ type, data }) => [type, data.contractorId])).toEqual([['contractor.created', body.id]])

  // A program of ada's that is removed while it waits.
  const session = await service.user('erp-that-waits')
  const program: User = { ...ada, session, ask: (method, path, body) => service.ask(method, path, { session, body }) }
  expect((await ada.ask('POST', '/me/identities', { session })).status).toBe(200)
  const last = (await list(program)).at(-1)?.id
  const waiting = list(program, `?wait=3&after=${last}`)
  await setTimeout(100)
  await ada.ask('DELETE', '/me/identities/idp?sub=erp-that-waits')
  await ada.ask('POST', '/contractors', { name: 'Secret' })
  expect(await waiting).toEqual([])
})

test('answers a wait without events with none', async () => {
  const last = (await list(eve)).at(-1)?.id
  expect(await list(eve, `?${last === undefined ? '' : `after=${last}&`}wait=1`)).toEqual([])
})

test('lets a user wait with four requests at a time', async () => {
  const last = (await list(ada)).at(-1)?.id
  const path = `/events?after=${last}&wait=2`
  const answers = await Promise.all(Array.from({ length: 5 }, () => ada.ask('GET', path)))
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 200, 200, 200, 503])
})
