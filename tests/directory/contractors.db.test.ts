import { randomUUID } from 'node:crypto'
import { StrKey } from '@stellar/stellar-sdk'
import { eq } from 'drizzle-orm'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { auditLog } from '#drizzle/schema/audit.ts'
import { contractors } from '#drizzle/schema/directory.ts'
import type { Answer } from '../support/api-client.ts'
import { captureLog } from '../support/console.ts'
import { accountOf, atNoon, fieldsOf, idOf, keyOf, NOW } from '../support/directory.ts'
import { openTestService, type TestService } from '../support/test-service.ts'

let service: TestService<'fake'>
let session: string
let logged: string[]
let employers = 1_000

beforeAll(async () => {
  service = await openTestService(atNoon())
})
afterAll(() => service.close())
/** Every test has a separate employer. */
beforeEach(async () => {
  logged = captureLog()
  employers += 1
  session = await service.wallet(accountOf(employers))
  Object.assign(service.ledger, { fault: undefined, requests: [] })
  service.clock.now = NOW
})
afterEach(() => {
  vi.restoreAllMocks()
})

const create = (body: unknown) => service.ask('POST', '/contractors', { session, body })
const patch = (id: string, body: unknown) => service.ask('PATCH', `/contractors/${id}`, { session, body })
const get = (id: string) => service.ask('GET', `/contractors/${id}`, { session })
const list = (query = '') => service.ask('GET', `/contractors${query}`, { session })
const refused = ({ status, body }: Answer) => [status, body.error]

const contract = StrKey.encodeContract(new Uint8Array(32).fill(9))
const seed = 'SAKICEVQLYWGSOJS4WW7HZJWAHZVEEBS527LHK5V4MLJALYKICQCJXMW'

describe('POST /contractors', () => {
  test('a name alone is enough; fields without a value are left out', async () => {
    const { status, body } = await create({ name: 'Ann' })
    expect(status).toBe(200)
    expect(body).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      name: 'Ann',
      status: 'invited',
      createdAt: NOW.toISOString(),
    })
    expect(service.ledger.requests).toEqual([])
  })

  test('keeps everything that it is given, and nothing that it does not know', async () => {
    const given = {
      name: 'Ann',
      email: 'Ann@Example.com',
      address: contract,
      rate: { amount: '0.0000001', currency: 'USDC' },
    }
    const more = { id: randomUUID(), pvk: keyOf(1), status: 'ready', lastPaidAt: NOW, organisation: randomUUID() }
    const { body } = await create({ ...more, ...given })
    expect(body).toEqual({ ...given, id: expect.any(String), status: 'invited', createdAt: NOW.toISOString() })
    expect(body.id).not.toBe(more.id)
    expect((await get(idOf({ status: 200, body, headers: new Headers(), link: undefined }))).body).toEqual(body)
  })

  test('is ready when the address is registered, with the viewing key that the ledger has', async () => {
    const address = accountOf(1)
    service.ledger.register(address, keyOf(1))
    const { body } = await create({ name: 'Ann', address, pvk: keyOf(2) })
    expect(body).toMatchObject({ status: 'ready', address, pvk: keyOf(1) })
    expect(service.ledger.requests).toEqual([1])
  })

  test('works while the ledger is out of reach: a contractor that cannot be looked up is invited', async () => {
    const address = accountOf(2)
    service.ledger.register(address, keyOf(2))
    service.ledger.fault = 'http-503'
    const { status, body } = await create({ name: 'Ann', address })
    expect([status, body.status, body.pvk]).toEqual([200, 'invited', undefined])
  })

  test('a body that is not JSON is refused, and so is none at all', async () => {
    expect((await create('{"name":')).status).toBe(400)
    expect(refused(await service.ask('POST', '/contractors', { session }))).toEqual([400, 'name required'])
  })

  test('a name in any script, or one that looks like HTML or SQL, is kept as it is', async () => {
    const name = `Åsa محمد 李小龍 👩🏽‍💻 𒀭 <b onclick="x()"> '; DROP TABLE contractors; --`
    const created = await create({ name })
    expect([created.status, created.body.name]).toEqual([200, name])
    expect((await get(idOf(created))).body.name).toBe(name)
  })

  test.each(['name', 'email', 'address'])('a secret seed in %s is refused, and stands nowhere', async (field) => {
    const answer = await create({ name: 'Ann', [field]: field === 'email' ? `${seed}@b.example` : seed })
    expect(answer.status).toBe(400)
    expect((await list()).body).toEqual({ contractors: [] })
    expect(JSON.stringify(answer.body).toUpperCase()).not.toContain(seed.slice(0, 20))
    expect(logged.join('\n').toUpperCase()).not.toContain(seed.slice(0, 20))
  })

  test('a second contractor with the email, in any case, or with the address', async () => {
    await create({ name: 'Ann', email: 'Ann@Example.com', address: accountOf(3) })
    expect(refused(await create({ name: 'Bob', email: 'aNN@eXAMPLE.COM' }))).toEqual([
      409,
      'another contractor has this email',
    ])
    expect(refused(await create({ name: 'Bob', address: accountOf(3) }))).toEqual([
      409,
      'another contractor has this address',
    ])
    expect(fieldsOf(await list(), 'contractors', 'name')).toEqual(['Ann'])
  })

  test('of 20 requests at once with one email one succeeds', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => create({ name: `${n}`, email: 'a@b.example' })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array<number>(19).fill(409)])
  })

  test('a removed contractor frees its email and address', async () => {
    const given = { name: 'Ann', email: 'a@b.example', address: accountOf(4) }
    const id = idOf(await create(given))
    await service.ask('DELETE', `/contractors/${id}`, { session })
    expect((await create(given)).status).toBe(200)
  })
})

describe('GET /contractors', () => {
  test('is newest first; of equal times the last made comes first', async () => {
    for (const name of ['a', 'b', 'c']) await create({ name })
    service.clock.now = new Date(NOW.getTime() - 1)
    await create({ name: 'older' })
    expect(fieldsOf(await list(), 'contractors', 'name')).toEqual(['c', 'b', 'a', 'older'])
    expect((await list()).headers.get('link')).toBeNull()
  })

  test('comes in pages, each saying where the next is', async () => {
    for (const name of ['a', 'b', 'c', 'd', 'e']) await create({ name })
    const seen: unknown[] = []
    let query = '?limit=2'
    for (let page = 0; page < 3; page += 1) {
      const answer = await list(query)
      seen.push(fieldsOf(answer, 'contractors', 'name'))
      query = /^<([^>]*)>; rel="next"$/.exec(answer.headers.get('link') ?? '')?.[1] ?? ''
      // A contractor that is made between two pages belongs on neither.
      await create({ name: `new ${page}` })
    }
    expect(seen).toEqual([['e', 'd'], ['c', 'b'], ['a']])
    expect(query).toBe('')
  })

  test('a page that holds exactly the rest is the last', async () => {
    for (const name of ['a', 'b']) await create({ name })
    expect((await list('?limit=2')).headers.get('link')).toBeNull()
  })

  test('a cursor of the last moment that there can be finds everything', async () => {
    await create({ name: 'a' })
    const cursor = Buffer.from(`${Date.UTC(10_000, 0) - 1}-1`).toString('base64url')
    expect(fieldsOf(await list(`?cursor=${cursor}`), 'contractors', 'name')).toEqual(['a'])
  })
})

describe('GET, PATCH and DELETE /contractors/{id}', () => {
  test('changes what is named and leaves the rest', async () => {
    const given = { name: 'Ann', email: 'a@b.example', address: accountOf(5), rate: { amount: '1', currency: 'USDC' } }
    const created = await create(given)
    const id = idOf(created)
    expect((await patch(id, {})).body).toEqual(created.body)
    expect((await patch(id, { name: 'Ann B.' })).body).toEqual({ ...created.body, name: 'Ann B.' })
    const rate = { amount: '2.5', currency: 'USDC' }
    expect((await patch(id, { rate, email: 'ann@b.example' })).body).toEqual({
      ...created.body,
      name: 'Ann B.',
      email: 'ann@b.example',
      rate,
    })
  })

  test('null clears email, address and rate, and the viewing key goes with the address', async () => {
    const address = accountOf(6)
    service.ledger.register(address, keyOf(6))
    const id = idOf(await create({ name: 'A', email: 'a@b.example', address, rate: { amount: '1', currency: 'USDC' } }))
    const { body } = await patch(id, { email: null, address: null, rate: null })
    expect(body).toEqual({ id, name: 'A', status: 'invited', createdAt: NOW.toISOString() })
  })

  test('a change that is refused changes nothing', async () => {
    const created = await create({ name: 'Ann' })
    const error = 'status must be one of invited, onboarding, ready, inactive'
    expect(refused(await patch(idOf(created), { name: 'Bea', status: 'paid' }))).toEqual([400, error])
    expect((await get(idOf(created))).body).toEqual(created.body)
  })

  test('an email or address that another contractor has is refused', async () => {
    await create({ name: 'Ann', email: 'a@b.example', address: accountOf(7) })
    const id = idOf(await create({ name: 'Bob', email: 'b@b.example' }))
    expect((await patch(id, { email: 'B@b.example' })).status).toBe(200)
    expect(refused(await patch(id, { email: 'A@b.example' }))).toEqual([409, 'another contractor has this email'])
    expect(refused(await patch(id, { address: accountOf(7) }))).toEqual([409, 'another contractor has this address'])
  })

  test.each(['invited', 'onboarding', 'ready', 'inactive'])('the status becomes %s as asked', async (status) => {
    const id = idOf(await create({ name: 'Ann' }))
    expect((await patch(id, { status })).body.status).toBe(status)
    expect((await get(id)).body.status).toBe(status)
  })

  test('a new address gets the status that the ledger gives it: ready or invited', async () => {
    const [registered, unknown] = [accountOf(8), accountOf(9)]
    service.ledger.register(registered, keyOf(8))
    const id = idOf(await create({ name: 'Ann' }))
    expect((await patch(id, { address: registered })).body).toMatchObject({ status: 'ready', pvk: keyOf(8) })
    const moved = (await patch(id, { address: unknown })).body
    expect([moved.status, moved.address, moved.pvk]).toEqual(['invited', unknown, undefined])
    service.ledger.fault = 'http-503'
    expect((await patch(id, { address: registered })).body).toMatchObject({ status: 'invited', address: registered })
    service.ledger.fault = undefined
    expect((await patch(id, { address: registered })).body).toMatchObject({ status: 'ready', pvk: keyOf(8) })
    service.ledger.fault = 'http-503'
    expect((await patch(id, { address: registered })).body).toMatchObject({ status: 'ready', pvk: keyOf(8) })
  })

  test('an inactive contractor stays inactive, also when the ledger shows its account', async () => {
    const address = accountOf(10)
    service.ledger.register(address, keyOf(10))
    const id = idOf(await create({ name: 'Ann' }))
    await patch(id, { status: 'inactive' })
    expect((await patch(id, { address })).body).toMatchObject({ status: 'inactive', pvk: keyOf(10) })
  })

  test('a removed contractor is no longer shown, and its record is kept', async () => {
    const id = idOf(await create({ name: 'Ann' }))
    const removed = await service.ask('DELETE', `/contractors/${id}`, { session })
    expect([removed.status, removed.body]).toEqual([200, { id }])
    for (const method of ['GET', 'PATCH', 'DELETE'] as const) {
      expect((await service.ask(method, `/contractors/${id}`, { session })).status).toBe(404)
    }
    expect((await list()).body).toEqual({ contractors: [] })
    const [row] = await service.db.select().from(contractors).where(eq(contractors.id, id))
    expect(row?.deletedAt).toEqual(NOW)
  })
})

test('the audit log says who did what to which record, and repeats no personal data of it', async () => {
  const id = idOf(
    await create({ name: 'Ann Secretname', email: 'ann@secret.example', rate: { amount: '4242', currency: 'USDC' } }),
  )
  await patch(id, { name: 'Bea Secretname', rate: null })
  await service.ask('POST', `/contractors/${id}/invite`, { session })
  await service.ask('DELETE', `/contractors/${id}`, { session })
  const rows = await service.db.select().from(auditLog).where(eq(auditLog.subjectId, id)).orderBy(auditLog.sequence)
  expect(rows.map(({ action, detail }) => [action, detail])).toEqual([
    ['contractor.created', { status: 'invited' }],
    ['contractor.updated', { fields: ['name', 'rate'], status: 'invited' }],
    ['contractor.invited', { version: 1 }],
    ['contractor.removed', {}],
  ])
  for (const row of rows) {
    expect(row).toMatchObject({
      at: NOW,
      actorKind: 'ledger',
      actorSub: accountOf(employers),
      subjectKind: 'contractor',
    })
    expect(row.organisation).toMatch(/^[0-9a-f-]{36}$/)
  }
  expect(JSON.stringify(rows)).not.toMatch(/Secretname|secret\.example|4242/)
})
