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
  test('requires only a name, and omits empty fields from the response', async () => {
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

  test('stores all given fields, and ignores unknown ones', async () => {
    const fields = {
      name: 'Ann',
      email: 'Ann@Example.com',
      address: contract,
      rate: { amount: '0.0000001', currency: 'USDC' },
    }
    const more = { id: randomUUID(), pvk: keyOf(1), status: 'ready', lastPaidAt: NOW, organisation: randomUUID() }
    const { body } = await create({ ...more, ...fields })
    expect(body).toEqual({ ...fields, id: expect.any(String), status: 'invited', createdAt: NOW.toISOString() })
    expect(body.id).not.toBe(more.id)
    expect((await get(idOf({ status: 200, body, headers: new Headers(), link: undefined }))).body).toEqual(body)
  })

  test('marks a contractor with a registered address as ready, with the viewing key on the ledger', async () => {
    const address = accountOf(1)
    service.ledger.register(address, keyOf(1))
    const { body } = await create({ name: 'Ann', address, pvk: keyOf(2) })
    expect(body).toMatchObject({ status: 'ready', address, pvk: keyOf(1) })
    expect(service.ledger.requests).toEqual([1])
  })

  test('creates an invited contractor while the ledger is unreachable', async () => {
    const address = accountOf(2)
    service.ledger.register(address, keyOf(2))
    service.ledger.fault = 'http-503'
    const { status, body } = await create({ name: 'Ann', address })
    expect([status, body.status, body.pvk]).toEqual([200, 'invited', undefined])
  })

  test('refuses a body that is not JSON, and a missing one', async () => {
    expect((await create('{"name":')).status).toBe(400)
    expect(refused(await service.ask('POST', '/contractors', { session }))).toEqual([400, 'name required'])
  })

  test('stores a name in any script, or one that looks like HTML or SQL, unchanged', async () => {
    const name = `Åsa محمد 李小龍 👩🏽‍💻 𒀭 <b onclick="x()"> '; DROP TABLE contractors; --`
    const created = await create({ name })
    expect([created.status, created.body.name]).toEqual([200, name])
    expect((await get(idOf(created))).body.name).toBe(name)
  })

  test.each(['name', 'email', 'address'])(
    'refuses a secret seed in %s, and neither stores nor logs it',
    async (field) => {
      const answer = await create({ name: 'Ann', [field]: field === 'email' ? `${seed}@b.example` : seed })
      expect(answer.status).toBe(400)
      expect((await list()).body).toEqual({ contractors: [] })
      expect(JSON.stringify(answer.body).toUpperCase()).not.toContain(seed.slice(0, 20))
      expect(logged.join('\n').toUpperCase()).not.toContain(seed.slice(0, 20))
    },
  )

  test('refuses a second contractor with the same email, in any case, or address', async () => {
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

  test('accepts one of 20 concurrent requests with the same email', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => create({ name: `${n}`, email: 'a@b.example' })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array<number>(19).fill(409)])
  })

  test('frees the email and address of a removed contractor', async () => {
    const fields = { name: 'Ann', email: 'a@b.example', address: accountOf(4) }
    const id = idOf(await create(fields))
    await service.ask('DELETE', `/contractors/${id}`, { session })
    expect((await create(fields)).status).toBe(200)
  })
})

describe('GET /contractors', () => {
  test('lists the newest first, and the last created first if times are equal', async () => {
    for (const name of ['a', 'b', 'c']) await create({ name })
    service.clock.now = new Date(NOW.getTime() - 1)
    await create({ name: 'older' })
    expect(fieldsOf(await list(), 'contractors', 'name')).toEqual(['c', 'b', 'a', 'older'])
    expect((await list()).headers.get('link')).toBeNull()
  })

  test('returns pages with a link to the next one', async () => {
    for (const name of ['a', 'b', 'c', 'd', 'e']) await create({ name })
    const seen: unknown[] = []
    let query = '?limit=2'
    for (let page = 0; page < 3; page += 1) {
      const answer = await list(query)
      seen.push(fieldsOf(answer, 'contractors', 'name'))
      query = /^<([^>]*)>; rel="next"$/.exec(answer.headers.get('link') ?? '')?.[1] ?? ''
      // A contractor created between two page requests is on neither page.
      await create({ name: `new ${page}` })
    }
    expect(seen).toEqual([['e', 'd'], ['c', 'b'], ['a']])
    expect(query).toBe('')
  })

  test('treats a page that contains exactly the rest as the last one', async () => {
    for (const name of ['a', 'b']) await create({ name })
    expect((await list('?limit=2')).headers.get('link')).toBeNull()
  })

  test('accepts a cursor at the last possible moment', async () => {
    await create({ name: 'a' })
    const cursor = Buffer.from(`${Date.UTC(10_000, 0) - 1}-1`).toString('base64url')
    expect(fieldsOf(await list(`?cursor=${cursor}`), 'contractors', 'name')).toEqual(['a'])
  })
})

describe('GET, PATCH and DELETE /contractors/{id}', () => {
  test('changes only the given fields', async () => {
    const fields = { name: 'Ann', email: 'a@b.example', address: accountOf(5), rate: { amount: '1', currency: 'USDC' } }
    const created = await create(fields)
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

  test('clears email, address and rate on null, and the viewing key with the address', async () => {
    const address = accountOf(6)
    service.ledger.register(address, keyOf(6))
    const id = idOf(await create({ name: 'A', email: 'a@b.example', address, rate: { amount: '1', currency: 'USDC' } }))
    const { body } = await patch(id, { email: null, address: null, rate: null })
    expect(body).toEqual({ id, name: 'A', status: 'invited', createdAt: NOW.toISOString() })
  })

  test('changes nothing if a change is refused', async () => {
    const created = await create({ name: 'Ann' })
    const error = 'status must be one of invited, onboarding, ready, inactive'
    expect(refused(await patch(idOf(created), { name: 'Bea', status: 'paid' }))).toEqual([400, error])
    expect((await get(idOf(created))).body).toEqual(created.body)
  })

  test('refuses an email or address of another contractor', async () => {
    await create({ name: 'Ann', email: 'a@b.example', address: accountOf(7) })
    const id = idOf(await create({ name: 'Bob', email: 'b@b.example' }))
    expect((await patch(id, { email: 'B@b.example' })).status).toBe(200)
    expect(refused(await patch(id, { email: 'A@b.example' }))).toEqual([409, 'another contractor has this email'])
    expect(refused(await patch(id, { address: accountOf(7) }))).toEqual([409, 'another contractor has this address'])
  })

  test.each(['invited', 'onboarding', 'ready', 'inactive'])('sets the status to %s as requested', async (status) => {
    const id = idOf(await create({ name: 'Ann' }))
    expect((await patch(id, { status })).body.status).toBe(status)
    expect((await get(id)).body.status).toBe(status)
  })

  test('sets the status for a new address from the ledger: ready or invited', async () => {
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

  test('leaves an inactive contractor inactive, even if the ledger has its account', async () => {
    const address = accountOf(10)
    service.ledger.register(address, keyOf(10))
    const id = idOf(await create({ name: 'Ann' }))
    await patch(id, { status: 'inactive' })
    expect((await patch(id, { address })).body).toMatchObject({ status: 'inactive', pvk: keyOf(10) })
  })

  test('hides a removed contractor, and keeps its record', async () => {
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

test('audits who changed which record, without personal data', async () => {
  const id = idOf(
    await create({
      name: 'Ann Secretname',
      email: 'ann@secret.example',
      rate: { amount: '4242.4242', currency: 'USDC' },
    }),
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
    })
    expect(row.organisation).toMatch(/^[0-9a-f-]{36}$/)
  }
  expect(JSON.stringify(rows)).not.toMatch(/Secretname|secret\.example|4242\.4242/)
})
