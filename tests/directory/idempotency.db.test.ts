import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { idempotencyKeys } from '#drizzle/schema/idempotency.ts'
import { OPERATIONS } from '#lib/api/interface.ts'
import { runChore } from '#lib/server/maintenance.ts'
import { accountOf, atNoon, fieldsOf, idOf, keyOf } from '../support/directory.ts'
import { openTestService, type TestService } from '../support/test-service.ts'

let service: TestService<'fake'>
let session: string
let employers = 80_000
beforeAll(async () => {
  service = await openTestService(atNoon())
})
afterAll(() => service.close())
beforeEach(async () => {
  employers += 1
  session = await service.wallet(accountOf(employers))
  await service.db.delete(idempotencyKeys)
})

const post = (path: string, body: unknown, key?: string, as = session) =>
  service.ask('POST', path, { session: as, body, ...(key !== undefined && { headers: { 'Idempotency-Key': key } }) })
const get = (path: string) => service.ask('GET', path, { session })
const isReplayed = ({ headers }: { headers: Headers }) => headers.get('idempotency-replayed') === 'true'
const contractorsNow = async () => fieldsOf(await get('/contractors'), 'contractors', 'name')

/** A contractor who can be paid, and a draft. */
async function prepare(): Promise<{ payee: string; batch: string }> {
  const address = accountOf(90_000 + employers)
  service.ledger.register(address, keyOf(90_000 + employers))
  const payee = idOf(await post('/contractors', { name: 'Payee', address }))
  return { payee, batch: idOf(await post('/batches', { name: 'Draft' })) }
}

/** A request of each operation that takes a key. */
const REQUESTS: Record<string, () => Promise<[path: string, body: unknown]>> = {
  createContractor: async () => ['/contractors', { name: 'Ann', email: 'ann@b.example', externalId: 'a' }],
  importContractors: async () => [
    '/contractors/bulk',
    {
      rows: [
        { name: 'Ann', email: 'ann@b.example' },
        { name: 'x'.repeat(300) },
        { name: 'Bob', email: 'ann@b.example' },
        { name: 'Cid', externalId: 'c' },
        { name: 'Dot', email: 'nobody' },
        null,
      ],
    },
  ],
  inviteContractor: async () => [`/contractors/${(await prepare()).payee}/invite`, undefined],
  createBatch: async () => ['/batches', { name: 'March', externalId: 'm' }],
  instructBatch: async () => {
    const { payee, batch } = await prepare()
    const instructions = [
      { contractorId: payee, encryptedAmount: 'sealed', externalId: 'p' },
      { contractorId: payee, encryptedAmount: 'again' },
      { contractorId: 'eve@b.example', encryptedAmount: 'sealed' },
      { contractorId: payee, externalId: 'x' },
    ]
    return [`/batches/${batch}/instructions`, { instructions }]
  },
  createWebhook: async () => ['/webhooks', { url: 'https://1.1.1.1/events' }],
  rotateWebhookSecret: async () => {
    const webhook = idOf(await post('/webhooks', { url: 'https://1.1.1.1/events' }))
    return [`/webhooks/${webhook}/secret`, undefined]
  },
}

test('is taken by the operations that create records', () => {
  const declared = OPERATIONS.filter(({ idempotent }) => idempotent).map(({ id }) => id)
  expect(declared.toSorted()).toEqual(Object.keys(REQUESTS).toSorted())
})

describe.each(Object.entries(REQUESTS))('%s', (_, request) => {
  test('presents its response again, and does nothing else', async () => {
    const [path, body] = await request()
    const first = await post(path, body, 'key-1')
    expect([first.status, isReplayed(first)]).toEqual([200, false])
    const count = async () => {
      const tables = ['contractors', 'batches', 'payouts', 'audit_log']
      const counts = sql.raw(tables.map((table) => `(select count(*)::int from ${table}) as ${table}`).join(', '))
      return ((await service.db.execute(sql`select ${counts}`)) as unknown as { rows: unknown[] }).rows
    }
    const before = await count()
    for (let time = 0; time < 2; time += 1) {
      const again = await post(path, body, 'key-1')
      expect([again.status, isReplayed(again), again.body]).toEqual([200, true, first.body])
    }
    expect(await count()).toEqual(before)
  })

  test('records no name, email, address or link', async () => {
    const [path, body] = await request()
    const { body: answer } = await post(path, body, 'ann@b.example')
    const stored = JSON.stringify(await service.db.select().from(idempotencyKeys))
    for (const secret of ['Ann', 'b.example', 'sealed', String(answer.inviteUrl), String(answer.address)]) {
      expect(stored).not.toContain(secret)
    }
  })

  test('runs concurrent requests with one key once', async () => {
    const [path, body] = await request()
    const answers = await Promise.all(Array.from({ length: 8 }, () => post(path, body, 'key-1')))
    const done = answers.filter(({ status }) => status === 200)
    const others = answers.filter(({ status }) => status !== 200)
    expect(done.filter((answer) => !isReplayed(answer))).toHaveLength(1)
    expect(new Set(done.map((answer) => JSON.stringify(answer.body))).size).toBe(1)
    for (const { status, body: refused } of others) {
      expect([status, refused.code]).toEqual([409, 'idempotency-key-in-use'])
    }
  })

  test('refuses another body with the same key', async () => {
    const [path] = await request()
    await post('/batches', { name: 'First' }, 'key-1')
    const another = { name: 'Another', rows: [], instructions: [], url: 'https://1.1.1.1/others' }
    expect(await post(path, another, 'key-1')).toMatchObject({
      status: 422,
      body: { code: 'idempotency-key-reused' },
    })
  })

  test.each([' ', 'two words', 'ключ', 'x'.repeat(256)])('refuses the key %j', async (key) => {
    const [path, body] = await request()
    const header = Buffer.from(key).toString('latin1')
    expect(await post(path, body, header)).toMatchObject({ status: 400, body: { code: 'idempotency-key-invalid' } })
  })

  test('refuses a request while one with the same key is not finished', async () => {
    const [path, body] = await request()
    await post(path, body, 'key-1')
    const setUntil = (interval: string) =>
      service.db.update(idempotencyKeys).set({ unfinishedUntil: sql`clock_timestamp() + ${interval}::interval` })
    await setUntil('1 minute')
    const refused = await post(path, body, 'key-1')
    expect([refused.status, refused.body.code, refused.headers.get('retry-after')]).toEqual([
      409,
      'idempotency-key-in-use',
      '1',
    ])
    // After that time it counts as failed, so that the request runs.
    await setUntil('-1 second')
    expect(isReplayed(await post(path, body, 'key-1'))).toBe(false)
  })
})

test('ignores the order of the fields of a body, and fields that the operation does not have', async () => {
  const first = await post('/contractors', { name: 'Ann', email: 'a@b.example' }, 'k')
  const again = await post('/contractors', '{ "email": "a@b.example", "unknown": [1], "name": "Ann" }', 'k')
  expect([isReplayed(again), again.body]).toEqual([true, first.body])
  expect((await post('/contractors', { name: 'Bob' }, 'K')).status).toBe(200)
})

test('refuses a body that is nested too deeply to compare', async () => {
  const rows = `{ "rows": [${'['.repeat(20_000)}${']'.repeat(20_000)}] }`
  expect(await post('/contractors/bulk', rows, 'k')).toMatchObject({ status: 400, body: { code: 'body-invalid' } })
})

test('does not record refusals', async () => {
  await post('/contractors', { name: 'Ann', email: 'a@b.example' })
  const body = { name: 'Bob', email: 'a@b.example' }
  expect((await post('/contractors', body, 'k')).status).toBe(409)
  expect((await post('/contractors', { name: '' }, 'k')).status).toBe(400)
  expect(isReplayed(await post('/contractors', { name: 'Cid' }, 'k'))).toBe(false)
})

test('is ignored by operations with another natural key', async () => {
  const { batch } = await prepare()
  for (let time = 0; time < 2; time += 1) {
    const answer = await post(`/batches/${batch}/ready`, undefined, 'two words')
    expect([answer.status, isReplayed(answer)]).toEqual([200, false])
  }
})

test('presents records as they are now', async () => {
  const { batch, payee } = await prepare()
  const created = await post('/contractors', { name: 'Ann' }, 'a')
  await service.ask('PATCH', `/contractors/${idOf(created)}`, { session, body: { name: 'Anna' } })
  expect((await post('/contractors', { name: 'Ann' }, 'a')).body).toMatchObject({ id: idOf(created), name: 'Anna' })
  const instructions = [{ contractorId: payee, encryptedAmount: 'sealed' }]
  await post(`/batches/${batch}/instructions`, { instructions }, 'b')
  await post(`/batches/${batch}/ready`, undefined)
  expect((await post(`/batches/${batch}/instructions`, { instructions }, 'b')).body).toMatchObject({
    payouts: [{ status: 'ready' }],
  })
})

test('responds 404 if the record was deleted, and leaves it out of lists', async () => {
  const { batch, payee } = await prepare()
  const instructions = [{ contractorId: payee, encryptedAmount: 'sealed' }]
  const rows = [{ name: 'Bob' }, { name: 'Cid' }]
  const requests: [path: string, body: unknown][] = [
    ['/contractors', { name: 'Ann' }],
    ['/batches', { name: 'March' }],
    [`/contractors/${payee}/invite`, undefined],
    [`/batches/${batch}/instructions`, { instructions }],
    ['/contractors/bulk', { rows }],
  ]
  for (const [path, body] of requests) await post(path, body, path)
  for (const list of ['contractors', 'batches']) {
    const [, ...others] = fieldsOf(await get(`/${list}`), list, 'id')
    // The newest contractor is Cid, the last of the import.
    const ids = list === 'batches' ? fieldsOf(await get('/batches'), 'batches', 'id') : others
    for (const id of ids) await service.ask('DELETE', `/${list}/${id}`, { session })
  }
  const answers = []
  for (const [path, body] of requests) answers.push(await post(path, body, path))
  expect(answers.map(({ status, body }) => [status, body.code])).toEqual([
    [404, 'contractor-not-found'],
    [404, 'batch-not-found'],
    [404, 'contractor-not-found'],
    [404, 'batch-not-found'],
    [200, undefined],
  ])
  expect(fieldsOf(answers[4] ?? raise(), 'imported', 'name')).toEqual(['Cid'])
  expect(await contractorsNow()).toEqual(['Cid'])
})

const raise = (): never => {
  throw new Error('no response')
}

test('presents the link of the first request, although a later invite has voided it', async () => {
  const { payee } = await prepare()
  const first = await post(`/contractors/${payee}/invite`, undefined, 'k')
  const later = await post(`/contractors/${payee}/invite`, undefined)
  expect(later.body).not.toEqual(first.body)
  expect((await post(`/contractors/${payee}/invite`, undefined, 'k')).body).toEqual(first.body)
})

test('belongs to the caller, and to every identity of a person', async () => {
  const first = await post('/contractors', { name: 'Ann' }, 'k')
  const other = await service.wallet(accountOf(employers + 5_000))
  expect(isReplayed(await post('/contractors', { name: 'Ann' }, 'k', other))).toBe(false)
  const joined = await service.user(`user ${employers}`)
  const join = await service.ask('POST', '/me/identities', { session, body: { session: joined } })
  expect(join.status).toBe(200)
  const again = await post('/contractors', { name: 'Ann' }, 'k', joined)
  expect([isReplayed(again), again.body]).toEqual([true, first.body])
  expect((await post('/contractors', { name: 'Bob' }, 'k', joined)).status).toBe(422)
})

test('is forgotten after 24 hours, and deleted by a chore', async () => {
  const first = await post('/contractors', { name: 'Ann' }, 'k')
  const age = (interval: string) =>
    service.db.update(idempotencyKeys).set({ createdAt: sql`clock_timestamp() - ${interval}::interval` })
  await age('23 hours 59 minutes')
  expect(isReplayed(await post('/contractors', { name: 'Ann' }, 'k'))).toBe(true)
  expect(await runChore(service.running, 'keys')).toBe(0)
  await age('24 hours')
  const second = await post('/contractors', { name: 'Bob' }, 'k')
  expect([second.status, isReplayed(second)]).toEqual([200, false])
  expect(idOf(second)).not.toBe(idOf(first))
  await age('24 hours')
  expect(await runChore(service.running, 'keys')).toBe(1)
  expect(await service.db.$count(idempotencyKeys)).toBe(0)
})
