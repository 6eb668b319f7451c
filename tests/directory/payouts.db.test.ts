import { eq, inArray } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { auditLog } from '#drizzle/schema/audit.ts'
import { contractors, PAYOUT_STATUSES, payouts } from '#drizzle/schema/directory.ts'
import type { BatchWithPayouts } from '#lib/directory/batches/batches.ts'
import { type Payout, payoutShape } from '#lib/directory/payouts/payouts.ts'
import type { Answer } from '../support/api-client.ts'
import { type Employer, employerNamed, openUser, type User } from '../support/fixtures.ts'
import { pair } from '../support/inner-transaction.ts'
import { openTestService, type TestService } from '../support/test-service.ts'

let service: TestService
let ada: Employer
let eve: Employer
let payees: { id: string; address: string }[]
let first: BatchWithPayouts
let second: BatchWithPayouts
const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000'
const START = Date.parse('2026-03-01T12:00:00.000Z')
/** the creation time of payout `index` in the first batch */
const moment = (index: number) => new Date(START + index * 1000).toISOString()

beforeAll(async () => {
  service = await openTestService()
  ;[ada, eve] = await Promise.all([employerNamed(service, 'ada'), employerNamed(service, 'eve')])
  payees = await Promise.all(Array.from({ length: 5 }, (_, index) => ada.engage(`payee ${index}`)))
  first = await ada.prepare(payees)
  second = await ada.prepare(payees.slice(0, 2), { draft: true })
  for (const [index, { id }] of first.payouts.entries()) {
    await service.db
      .update(payouts)
      .set({ createdAt: new Date(moment(index)) })
      .where(eq(payouts.id, id))
  }
})
afterAll(() => service.close())

async function list(query = '', by: User = ada): Promise<string[]> {
  const answer = await by.ask<{ payouts: Payout[] }>('GET', `/payouts${query}`)
  expect(answer.status).toBe(200)
  return answer.body.payouts.map(({ id }) => id)
}
const ids = (batch: BatchWithPayouts) => batch.payouts.map(({ id }) => id)

test('lists all payouts, newest first, and the last created first if times are equal', async () => {
  const newest = [...ids(second).toReversed(), ...ids(first).toReversed()]
  expect(await list()).toEqual(newest)
  const { body } = await ada.ask<{ payouts: Payout[] }>('GET', '/payouts')
  for (const payout of body.payouts) expect(payoutShape.strict().parse(payout)).toEqual(payout)
})

test('keeps the order of instructions inside a batch, regardless of their times', async () => {
  const { body } = await ada.ask<BatchWithPayouts>('GET', `/batches/${first.id}`)
  expect(ids(body)).toEqual(ids(first))
  expect(body.payouts.map(({ contractorId }) => contractorId)).toEqual(payees.map(({ id }) => id))
})

test.each([1, 2, 3, 500])('returns each payout once in pages of %i, in list order', async (limit) => {
  const pages: string[] = []
  let link: string | undefined = `?limit=${limit}`
  let turns = 0
  while (link) {
    const answer: Answer<{ payouts: Payout[] }> = await ada.ask('GET', `/payouts${link}`)
    expect(answer.body.payouts.length).toBeLessThanOrEqual(limit)
    pages.push(...answer.body.payouts.map(({ id }) => id))
    link = answer.link
    turns += 1
  }
  expect(pages).toEqual(await list())
  expect(turns).toBe(Math.ceil(7 / limit))
})

test('keeps the filters on the next page', async () => {
  const answer = await ada.ask('GET', `/payouts?batchId=${first.id}&limit=2`)
  const query = new URLSearchParams(answer.link?.slice(1))
  expect(query.get('batchId')).toBe(first.id)
  expect(await list(`?${query}`)).toEqual(ids(first).toReversed().slice(2, 4))
})

describe('filters', () => {
  test('by batch, by contractor, by both', async () => {
    expect(await list(`?batchId=${second.id}`)).toEqual(ids(second).toReversed())
    const [payee] = payees
    expect(await list(`?contractorId=${payee?.id}`)).toEqual([second.payouts[0]?.id, first.payouts[0]?.id])
    expect(await list(`?contractorId=${payee?.id}&batchId=${first.id}`)).toEqual([first.payouts[0]?.id])
  })

  test('treats from as inclusive and to as exclusive, in any time zone', async () => {
    const in3 = ids(first)
    const query = (fields: Record<string, string>) => `?${new URLSearchParams({ batchId: first.id, ...fields })}`
    expect(await list(query({ from: moment(3) }))).toEqual([in3[4], in3[3]])
    expect(await list(query({ to: moment(1) }))).toEqual([in3[0]])
    expect(await list(query({ from: moment(1), to: moment(3) }))).toEqual([in3[2], in3[1]])
    expect(await list(query({ from: '2026-03-01T14:00:03+02:00', to: '2026-03-01T07:00:04-05:00' }))).toEqual([in3[3]])
    expect(await list(query({ from: moment(3), to: moment(1) }))).toEqual([])
    expect(await list(query({ from: '2026-03-01T12:00Z', to: '2026-03-01T14:01+02:00' }))).toHaveLength(5)
    expect(await list(query({ from: '2026-03-01T12:01Z' }))).toEqual([])
    expect(await list(query({ from: '2026-03-01', to: '2026-03-02' }))).toHaveLength(5)
    expect(await list(query({ from: '2026-03-02' }))).toEqual([])
    expect(await list(query({ from: '', to: '', status: '', contractorId: '', limit: '', cursor: '' }))).toHaveLength(5)
    expect(await list(query({ from: '0001-01-01T00:00:00Z', to: '9999-12-31T23:59:59.999Z' }))).toHaveLength(5)
  })

  test('by each status', async () => {
    const [one, two] = ids(second)
    const rows = [
      { status: 'pending', transfer: '00000000-0000-4000-8000-00000000000a' },
      { status: 'paid', transfer: '00000000-0000-4000-8000-00000000000a', txHash: 'b', paidAt: new Date(START) },
      { status: 'failed', error: 'why' },
      { status: 'canceled' },
    ] as const
    for (const row of rows) {
      await service.db
        .update(payouts)
        .set({ transfer: null, txHash: null, paidAt: null, error: null, ...row })
        .where(eq(payouts.id, two ?? ''))
      expect(await list(`?status=${row.status}`)).toEqual([two])
      const { body } = await ada.ask<{ payouts: Payout[] }>('GET', `/payouts?status=${row.status}`)
      const keys = Object.keys(body.payouts[0] ?? {})
      expect(keys.filter((key) => ['txHash', 'paidAt', 'error'].includes(key)).toSorted()).toEqual(
        { pending: [], paid: ['paidAt', 'txHash'], failed: ['error'], canceled: [] }[row.status],
      )
    }
    expect(await list('?status=draft')).toEqual([one])
    expect(await list('?status=ready')).toEqual(ids(first).toReversed())
  })

  test.each([
    `batchId=${UNKNOWN_ID}`,
    `contractorId=${UNKNOWN_ID}`,
    'batchId=x',
    "contractorId=' OR true --",
    'batchId=%00',
  ])('returns an empty list for the unknown id %s', async (query) => {
    expect(await list(`?${query}`)).toEqual([])
  })

  test.each([
    'status=done',
    'status=PAID',
    'from=yesterday',
    'from=2026-02-30',
    'from=2026-03-01T12Z',
    'from=2026-03-01T12:00:00',
    'from=2026-02-30T12:00:00Z',
    'from=2026-03-01T25:00:00Z',
    'from=1772366400000',
    'from=0000-01-01T00:00:00Z',
    'from=0001-01-01T00:00:00%2B01:00',
    'to=9999-12-31T23:59:59-01:00',
    'to=%2B012026-01-01T00:00:00Z',
    'to=infinity',
    'limit=0',
    'cursor=x',
  ])('responds 400 to %s and names it', async (query) => {
    const answer = await ada.ask<{ error: string }>('GET', `/payouts?${query}`)
    expect(answer.status).toBe(400)
    expect(answer.body.error).toMatch(new RegExp(`^${query.split('=')[0]} `))
  })
})

describe('visibility', () => {
  test('shows another organisation only its own payouts with each filter', async () => {
    const own = await eve.prepare([await eve.engage('hers')])
    expect(await list('', eve)).toEqual(ids(own))
    expect(await list(`?batchId=${first.id}`, eve)).toEqual([])
    expect(await list(`?contractorId=${payees[0]?.id}`, eve)).toEqual([])
    expect(await list(`?batchId=${own.id}`)).toEqual([])
    expect((await list()).filter((id) => ids(own).includes(id))).toEqual([])
  })

  /** A user of an identity provider, linked to contractor records. */
  async function link(sub: string, records: { id: string }[]): Promise<User> {
    const user = await openUser(service, { kind: 'idp', sub, issuer: 'https://id.example' })
    await user.ask('GET', '/payouts')
    await service.db
      .update(contractors)
      .set({ linkedKind: 'idp', linkedSub: sub })
      .where(
        inArray(
          contractors.id,
          records.map(({ id }) => id),
        ),
      )
    return user
  }

  test('shows a contractor its payouts from every employer', async () => {
    const mine = await eve.engage('also a payee of Ada')
    const others = await eve.engage('somebody else')
    const [payee] = payees
    if (!payee) throw new Error('no payee')
    const batch = await eve.prepare([others, mine])
    const user = await link('grace', [payee, mine])
    const all = [batch.payouts[1]?.id, second.payouts[0]?.id, first.payouts[0]?.id]
    expect(await list('', user)).toEqual(all)
    expect(await list(`?batchId=${batch.id}`, user)).toEqual([batch.payouts[1]?.id])
    expect(await list(`?contractorId=${others.id}`, user)).toEqual([])
    expect(await list(`?contractorId=${payees[1]?.id}`, user)).toEqual([])
    const page = await user.ask<{ payouts: Payout[] }>('GET', '/payouts?limit=2')
    expect(page.body.payouts.map(({ id }) => id)).toEqual(all.slice(0, 2))
    expect(await list(page.link, user)).toEqual(all.slice(2))
  })

  test('shows a user who is employer and contractor the payouts of both, each once', async () => {
    const walt = await employerNamed(service, 'walt')
    const self = await walt.engage('his own record')
    const batch = await walt.prepare([self])
    const elsewhere = await eve.engage('walt as a payee')
    const received = await eve.prepare([elsewhere])
    await service.db
      .update(contractors)
      .set({ linkedKind: 'ledger', linkedSub: pair('walt').publicKey() })
      .where(inArray(contractors.id, [self.id, elsewhere.id]))
    expect(await list('', walt)).toEqual([...ids(received), ...ids(batch)])
    const page = await walt.ask<{ payouts: Payout[] }>('GET', '/payouts?limit=1')
    expect(page.body.payouts.map(({ id }) => id)).toEqual(ids(received))
    expect(await list(page.link, walt)).toEqual(ids(batch))
  })

  test('shows payouts of a removed contractor to the employer only', async () => {
    const gone = await eve.engage('soon gone')
    const batch = await eve.prepare([gone])
    const user = await link('gone', [gone])
    expect(await list('', user)).toEqual(ids(batch))
    await service.db.update(contractors).set({ deletedAt: new Date() }).where(eq(contractors.id, gone.id))
    expect(await list('', user)).toEqual([])
    expect(await list(`?contractorId=${gone.id}`, eve)).toEqual(ids(batch))
  })
})

test('allows only listed payout statuses, also in the table', async () => {
  const [id] = ids(first)
  await expect(
    service.db
      .update(payouts)
      .set({ status: 'lost' as never })
      .where(eq(payouts.id, id ?? '')),
  ).rejects.toMatchObject({ cause: { code: '23514' } })
  expect(PAYOUT_STATUSES).toHaveLength(6)
})

test('rejects changes to the audit log', async () => {
  await expect(service.db.delete(auditLog)).rejects.toMatchObject({ cause: { code: '23000' } })
  await expect(service.db.update(auditLog).set({ actorSub: 'nobody' })).rejects.toMatchObject({
    cause: { code: '23000' },
  })
})
