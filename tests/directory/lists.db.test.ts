import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { MAX_COUNTED } from '#lib/db/count.ts'
import type { Batch } from '#lib/directory/batches/batches.ts'
import type { Answer, Method } from '../support/api-client.ts'
import { accountOf, atNoon, fieldsOf } from '../support/directory.ts'
import { employerNamed } from '../support/fixtures.ts'
import { openTestService, type TestService } from '../support/test-service.ts'

describe('GET /contractors', () => {
  let service: TestService<'fake'>
  let session: string
  let names: (query: string) => Promise<unknown[]>
  const address = accountOf(30_001)
  beforeAll(async () => {
    service = await openTestService(atNoon())
    session = await service.wallet(accountOf(30_000))
    const rows = [
      { name: 'Ada Lovelace', email: 'ada@engines.example' },
      { name: 'Bob 100%', address },
      { name: 'C_D' },
      { name: 'back\\slash' },
      { name: 'Ærø' },
    ]
    await service.ask('POST', '/contractors/bulk', { session, body: { rows } })
    const list = await service.ask('GET', '/contractors', { session })
    const [, , third] = fieldsOf(list, 'contractors', 'id')
    await service.ask('PATCH', `/contractors/${third}`, { session, body: { status: 'inactive' } })
    names = async (query) =>
      fieldsOf(await service.ask('GET', `/contractors?${query}`, { session }), 'contractors', 'name')
  })
  afterAll(() => service.close())

  test.each<[string, string[]]>([
    ['q=LOVE', ['Ada Lovelace']],
    ['q=engines.example', ['Ada Lovelace']],
    [`q=${accountOf(30_001).slice(10, 30)}`, ['Bob 100%']],
    ['q=%25', ['Bob 100%']],
    ['q=_', ['C_D']],
    ['q=%5C', ['back\\slash']],
    ['q=%C3%86R%C3%98', ['Ærø']],
    ["q='%20OR%20true%20--", []],
    ['status=inactive', ['C_D']],
    ['status=inactive&q=ada', []],
    ['status=ready', []],
  ])('matches the query %s to %j', async (query, expected) => {
    expect(await names(query)).toEqual(expected)
  })

  test.each(['status=gone', 'q=%00', 'q=a%0Ab', `q=${'x'.repeat(201)}`])('responds 400 to %s', async (query) => {
    expect((await service.ask('GET', `/contractors?${query}`, { session })).status).toBe(400)
  })

  test.each(['/contractors', '/batches', '/payouts'])(
    'responds 400 to a parameter that %s does not have, and names it',
    async (path) => {
      const answer = await service.ask('GET', `${path}?stauts=ready&limit=1&page=2`, { session })
      expect([answer.status, answer.body]).toEqual([
        400,
        { error: 'unknown query parameter: stauts, page', code: 'query-unknown' },
      ])
    },
  )

  test('counts the filtered list on every page if a limit is given', async () => {
    const total = ({ headers }: Answer) => headers.get('x-total-count')
    const first = await service.ask('GET', '/contractors?limit=2&status=invited', { session })
    expect([fieldsOf(first, 'contractors', 'id').length, total(first)]).toEqual([2, '4'])
    const rest = /^<([^>]*)>; rel="next"$/.exec(first.headers.get('link') ?? '')?.[1]
    const second = await service.ask('GET', `/contractors${rest}`, { session })
    expect([fieldsOf(second, 'contractors', 'id').length, total(second)]).toEqual([2, '4'])
    expect(total(await service.ask('GET', '/contractors', { session }))).toBeNull()
  })

  test('counts contractors added one by one or in bulk, but not removed ones', async () => {
    const own = await service.wallet(accountOf(30_002))
    const ask = (method: Method, path: string, body?: unknown) => service.ask(method, path, { session: own, body })
    const total = async () => (await ask('GET', '/contractors?limit=1')).headers.get('x-total-count')
    const rows = Array.from({ length: 600 }, (_, index) => ({ name: `c${index}` }))
    await ask('POST', '/contractors/bulk', { rows })
    await ask('POST', '/contractors', { name: 'one more' })
    expect(await total()).toBe('601')
    const [id] = fieldsOf(await ask('GET', '/contractors?limit=1'), 'contractors', 'id')
    await ask('DELETE', `/contractors/${id}`)
    await ask('DELETE', `/contractors/${id}`)
    expect(await total()).toBe('600')
  })

  test('counts up to 10,000 records that match a filter, and all records without one', async () => {
    const own = await service.wallet(accountOf(30_003))
    const total = async (query: string) =>
      (await service.ask('GET', `/contractors?limit=1${query}`, { session: own })).headers.get('x-total-count')
    await service.ask('POST', '/contractors', { session: own, body: { name: 'c0' } })
    const add = (count: number) =>
      service.db.execute(sql`INSERT INTO contractors (organisation, name, status, invite_expires_at)
        SELECT organisation, 'c', 'invited', now() FROM identities, generate_series(1, ${count}) WHERE sub = ${accountOf(30_003)}`)
    await add(MAX_COUNTED - 1)
    expect([await total('&q=c'), await total('&status=invited'), await total('')]).toEqual(['10000', '10000', '10000'])
    await add(1)
    expect([await total('&q=c'), await total('&status=invited'), await total('')]).toEqual([null, null, '10001'])
    expect(await total('&q=c0')).toBe('1')
  })
})

describe('GET /batches', () => {
  let service: TestService
  beforeAll(async () => {
    service = await openTestService()
  })
  afterAll(() => service.close())

  test('filters by status and by part of the name', async () => {
    const ada = await employerNamed(service, 'ada')
    const [march] = await Promise.all(
      ['March', 'Mars', 'May'].map((name) => ada.ask<Batch>('POST', '/batches', { name })),
    )
    await ada.ask('POST', `/batches/${march?.body.id}/ready`)
    const names = async (query: string) => {
      const { body } = await ada.ask<{ batches: Batch[] }>('GET', `/batches?${query}`)
      return body.batches.map(({ name }) => name).toSorted()
    }
    expect(await names('q=mAr')).toEqual(['March', 'Mars'])
    expect(await names('q=mar&status=draft')).toEqual(['Mars'])
    expect(await names('status=ready&limit=1')).toEqual(['March'])
    expect((await ada.ask('GET', '/batches?status=late')).status).toBe(400)
  })

  test('counts the filtered list on every page if a limit is given', async () => {
    const grace = await employerNamed(service, 'grace')
    const created = await Promise.all(
      ['a', 'b', 'c', 'd'].map((name) => grace.ask<Batch>('POST', '/batches', { name })),
    )
    await grace.ask('DELETE', `/batches/${created[0]?.body.id}`)
    await grace.ask('POST', `/batches/${created[1]?.body.id}/ready`)
    const totals = async (query: string) => (await grace.ask('GET', `/batches${query}`)).headers.get('x-total-count')
    const first = await grace.ask('GET', '/batches?limit=2')
    const [, rest = ''] = /^<([^>]*)>/.exec(first.headers.get('link') ?? '') ?? []
    expect([
      await totals('?limit=2'),
      await totals(rest),
      await totals('?limit=1&status=draft'),
      await totals(''),
    ]).toEqual(['3', '3', '2', null])
    const other = await employerNamed(service, 'nobody’s employer')
    expect((await other.ask('GET', '/batches?limit=1')).headers.get('x-total-count')).toBe('0')
  })
})
