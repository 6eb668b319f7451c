import { eq, sql } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { auditLog } from '#drizzle/schema/audit.ts'
import { batches, type ContractorStatus } from '#drizzle/schema/directory.ts'
import { type Batch, type BatchWithPayouts, batchShape, batchWithPayoutsShape } from '#lib/directory/batches/batches.ts'
import type { Instructed } from '#lib/directory/batches/instruction-rows.ts'
import { type Employer, employerNamed, openUser } from '../support/fixtures.ts'
import { pair } from '../support/inner-transaction.ts'
import { openTestService, type TestService } from '../support/test-service.ts'

let service: TestService
let ada: Employer
let eve: Employer
beforeAll(async () => {
  service = await openTestService()
  ;[ada, eve] = await Promise.all([employerNamed(service, 'ada'), employerNamed(service, 'eve')])
})
afterAll(() => service.close())

const seed = pair('a forbidden seed').secret()
const NOBODY = '00000000-0000-4000-8000-000000000000'
const create = async (by = ada, name = 'March') => (await by.ask<Batch>('POST', '/batches', { name })).body
const instruct = (id: string, instructions: unknown, by = ada) =>
  by.ask<Instructed>('POST', `/batches/${id}/instructions`, { instructions })
const find = async (id: string) => (await ada.ask<BatchWithPayouts>('GET', `/batches/${id}`)).body
const actionsOn = async (id: string) =>
  (await service.db.select().from(auditLog).where(eq(auditLog.subjectId, id)).orderBy(auditLog.sequence)).map(
    ({ action, actorSub, organisation }) => [action, actorSub === ada.identity.sub, organisation === ada.organisation],
  )

describe('POST /batches', () => {
  test('creates an empty draft, and ignores a status or id in the body', async () => {
    const answer = await ada.ask<Batch>('POST', '/batches', { name: 'March', status: 'completed', id: NOBODY })
    expect(answer).toEqual({
      status: 200,
      link: undefined,
      headers: expect.anything(),
      body: {
        id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        name: 'March',
        status: 'draft',
        payoutCount: 0,
        settledCount: 0,
        failedCount: 0,
        createdAt: expect.any(String),
      },
    })
    expect(answer.body.id).not.toBe(NOBODY)
    expect(batchShape.strict().parse(answer.body)).toEqual(answer.body)
    expect(await find(answer.body.id)).toEqual({ ...answer.body, payouts: [] })
    expect(await actionsOn(answer.body.id)).toEqual([['batch.created', true, true]])
  })

  test('keeps a name in any script unchanged', async () => {
    const name = `<script> '; DROP TABLE batches; -- मार्च · مارس · 三月 · Μάρτιος · 👩‍💻 ${'𝔐'.repeat(100)}`
    expect((await find((await create(ada, name)).id)).name).toBe(name)
  })

  test.each([undefined, '{', '[]', '"March"', 'null', { name: 'm'.repeat(201) }])(
    'responds 400 to %j',
    async (body) => {
      expect((await ada.ask('POST', '/batches', body)).status).toBe(400)
    },
  )
})

describe('GET /batches', () => {
  test('lists batches newest first, page by page, with equal times in order of creation', async () => {
    const walt = await employerNamed(service, 'walt')
    const created = await Promise.all(Array.from({ length: 7 }, (_, index) => create(walt, `batch ${index}`)))
    await service.db.update(batches).set({ createdAt: new Date('2026-01-01T00:00:00Z') })
    const whole = await walt.ask<{ batches: Batch[] }>('GET', '/batches')
    expect(new Set(whole.body.batches.map(({ id }) => id))).toEqual(new Set(created.map(({ id }) => id)))
    expect(whole.link).toBeUndefined()
    const pages: Batch[][] = []
    for (let link: string | undefined = '?limit=3'; link; ) {
      const page: Awaited<ReturnType<typeof walt.ask<{ batches: Batch[] }>>> = await walt.ask('GET', `/batches${link}`)
      pages.push(page.body.batches)
      link = page.link
    }
    expect(pages.map((page) => page.length)).toEqual([3, 3, 1])
    expect(pages.flat()).toEqual(whole.body.batches)
    const { rows } = (await service.db.execute(
      sql`SELECT id FROM batches WHERE organisation = ${walt.organisation} ORDER BY sequence DESC`,
    )) as unknown as { rows: { id: string }[] }
    expect(whole.body.batches.map(({ id }) => id)).toEqual(rows.map(({ id }) => id))
  })
})

describe('POST /batches/{id}/instructions', () => {
  const sealed = (contractorId: unknown, encryptedAmount: unknown = 'x') => ({ contractorId, encryptedAmount })

  test('creates one payout per instruction, in order, with the contractor’s current address', async () => {
    const [one, two, three] = await Promise.all(['one', 'two', 'three'].map((name) => ada.engage(name)))
    const { id } = await create()
    const payees = [three, one, two]
    const answer = await instruct(
      id,
      payees.map((payee, index) => ({ contractorId: payee?.id, encryptedAmount: `sealed ${index}`, amount: 5 })),
    )
    expect(answer.status).toBe(200)
    expect(answer.body.errors).toEqual([])
    expect(answer.body.payouts).toEqual(
      payees.map((payee, index) => ({
        id: expect.any(String),
        batchId: id,
        contractorId: payee?.id,
        status: 'draft',
        createdAt: expect.any(String),
        address: payee?.address,
        encryptedAmount: `sealed ${index}`,
      })),
    )
    const batch = await find(id)
    expect(batch).toMatchObject({ status: 'draft', payoutCount: 3, payouts: answer.body.payouts })
    expect(batchWithPayoutsShape.strict().parse(batch)).toEqual(batch)
  })

  test('accepts or refuses each instruction separately, with the reason', async () => {
    const ready = await ada.engage('ready')
    const again = await ada.engage('again')
    const foreign = await eve.engage('foreign')
    const removed = await ada.engage('removed', { deletedAt: new Date() })
    const others = await Promise.all(
      (['invited', 'onboarding', 'inactive'] satisfies ContractorStatus[]).map((status) =>
        ada.engage(status, { status }),
      ),
    )
    const { id } = await create()
    await instruct(id, [{ contractorId: again.id, encryptedAmount: 'first' }])
    const answer = await instruct(id, [
      ...[NOBODY, 'not an id', ready.id.toUpperCase(), foreign.id, removed.id].map((id) => sealed(id)),
      ...others.map((other) => sealed(other.id)),
      sealed(again.id, 'second'),
      ...[undefined, null, '', '   ', 7, {}, ['x'], 'x'.repeat(4097), 'a\nb', 'a\u0000b', seed].map(
        (encryptedAmount) => ({ contractorId: ready.id, encryptedAmount }),
      ),
      sealed(ready.id, 'x'.repeat(4096)),
      sealed(ready.id, 'twice in one request'),
    ])
    expect(answer.status).toBe(200)
    expect(answer.body.payouts).toMatchObject([{ contractorId: ready.id, encryptedAmount: 'x'.repeat(4096) }])
    expect(answer.body.errors.map(({ reason }) => reason)).toEqual([
      ...Array(5).fill('contractor not found'),
      ...Array(3).fill('contractor is not ready'),
      'contractor already in this batch',
      ...Array(7).fill('encryptedAmount required'),
      'encryptedAmount must have at most 4096 characters',
      'encryptedAmount must not contain control characters',
      'encryptedAmount must not contain control characters',
      'encryptedAmount must not contain a secret seed',
      'contractor already in this batch',
    ])
    expect(answer.body.errors[1]?.contractorId).toBe('not an id')
    const batch = await find(id)
    expect(batch.payouts.map(({ encryptedAmount }) => encryptedAmount)).toEqual(['first', 'x'.repeat(4096)])
    expect(batch.payoutCount).toBe(2)
  })

  test.each([
    ['no instructions', {}, 'instructions required'],
    ['not a list', { instructions: {} }, 'instructions must be a list'],
    ['more than 4,000', { instructions: Array(4_001).fill(0) }, 'instructions must have at most 4,000 items'],
    ['a row that is not an object', { instructions: ['x'] }, 'instructions.0 must be an object'],
    ['no contractorId', { instructions: [{ encryptedAmount: 'x' }] }, 'instructions.0.contractorId required'],
    ['a number as contractor id', { instructions: [sealed(7)] }, 'instructions.0.contractorId must be a string'],
    [
      'a seed as contractor id',
      { instructions: [sealed(seed)] },
      'instructions.0.contractorId must not contain a secret seed',
    ],
  ])('responds 400 to %s, and applies none of the request', async (_, body, error) => {
    const payee = await ada.engage('innocent').catch(() => undefined)
    const { id } = await create()
    const whole =
      'instructions' in body && Array.isArray(body.instructions) && payee
        ? { instructions: [...body.instructions, { contractorId: payee.id, encryptedAmount: 'x' }] }
        : body
    expect(await ada.ask('POST', `/batches/${id}/instructions`, whole)).toMatchObject({ status: 400, body: { error } })
    expect((await find(id)).payoutCount).toBe(0)
  })

  test('accepts an empty list of instructions', async () => {
    const { id } = await create()
    expect(await instruct(id, [])).toMatchObject({ status: 200, body: { payouts: [], errors: [] } })
  })

  test('responds 409 to instructions for a locked batch', async () => {
    const payee = await ada.engage('late')
    const { id } = await create()
    await ada.ask('POST', `/batches/${id}/ready`)
    expect(await instruct(id, [{ contractorId: payee.id, encryptedAmount: 'x' }])).toMatchObject({
      status: 409,
      body: { error: 'batch is locked', code: 'batch-locked' },
    })
    expect((await find(id)).payouts).toEqual([])
  })

  test('creates one payout for twenty concurrent requests for one contractor, and counts it once', async () => {
    const payee = await ada.engage('wanted')
    const { id } = await create()
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        instruct(id, [{ contractorId: payee.id, encryptedAmount: `sealed ${index}` }]),
      ),
    )
    expect(answers.map(({ body }) => body.payouts.length).toSorted()).toEqual([...Array(19).fill(0), 1])
    expect(await find(id)).toMatchObject({ payoutCount: 1, payouts: [{ contractorId: payee.id }] })
  })

  test('marks every accepted payout as ready when instructions race with the lock', async () => {
    const payees = await Promise.all(Array.from({ length: 12 }, (_, index) => ada.engage(`racer ${index}`)))
    const { id } = await create()
    const answers = await Promise.all([
      ...payees.map(({ id: contractorId }) => instruct(id, [{ contractorId, encryptedAmount: 'x' }])),
      ada.ask('POST', `/batches/${id}/ready`),
    ])
    const accepted = answers.filter(({ body }) => 'payouts' in body && Array.isArray(body.payouts)).length
    const batch = await find(id)
    expect(batch.status).toBe('ready')
    expect(batch.payoutCount).toBe(accepted)
    expect(batch.payouts.map(({ status }) => status)).toEqual(Array(accepted).fill('ready'))
  })
})

describe('POST /batches/{id}/ready', () => {
  test('locks the batch once for twenty concurrent requests, with the same response for all', async () => {
    const payee = await ada.engage('patient')
    const { id } = await create()
    await instruct(id, [{ contractorId: payee.id, encryptedAmount: 'x' }])
    const answers = await Promise.all(Array.from({ length: 20 }, () => ada.ask<Batch>('POST', `/batches/${id}/ready`)))
    const { payouts, ...batch } = await find(id)
    expect(answers).toEqual(Array(20).fill({ status: 200, link: undefined, headers: expect.anything(), body: batch }))
    expect(batch).toMatchObject({ status: 'ready', payoutCount: 1 })
    expect(payouts).toMatchObject([{ status: 'ready' }])
    expect((await actionsOn(id)).filter(([action]) => action === 'batch.locked')).toEqual([
      ['batch.locked', true, true],
    ])
  })

  test('locks a batch without payouts, idempotently', async () => {
    const { id } = await create()
    for (let round = 0; round < 2; round += 1) {
      expect(await ada.ask('POST', `/batches/${id}/ready`)).toMatchObject({ status: 200, body: { status: 'ready' } })
    }
  })

  test.each(['started', 'completed', 'failed'] as const)('responds 409 for a batch that is %s', async (status) => {
    const { id } = await create()
    await service.db.update(batches).set({ status }).where(eq(batches.id, id))
    expect(await ada.ask('POST', `/batches/${id}/ready`)).toMatchObject({
      status: 409,
      body: { error: `batch is ${status}` },
    })
    expect(await instruct(id, [])).toMatchObject({
      status: 409,
      body: { error: 'batch is locked', code: 'batch-locked' },
    })
  })
})

test('returns the payouts of GET /batches/{id} page by page, in order', async () => {
  const payees = await Promise.all(Array.from({ length: 5 }, (_, index) => ada.engage(`paged ${index}`)))
  const { id, payouts } = await ada.prepare(payees)
  const pages: unknown[][] = []
  for (let link: string | undefined = '?limit=2'; link && pages.length < 5; ) {
    const page: Awaited<ReturnType<typeof ada.ask<BatchWithPayouts>>> = await ada.ask('GET', `/batches/${id}${link}`)
    pages.push(page.body.payouts)
    link = page.link
  }
  expect(pages.map((page) => page.length)).toEqual([2, 2, 1])
  expect(pages.flat()).toEqual(payouts)
})

test('returns only the counters from GET /batches/{id}/status', async () => {
  const { id } = await ada.prepare([await ada.engage('counted')])
  expect(await ada.ask('GET', `/batches/${id}/status`)).toEqual({
    status: 200,
    link: undefined,
    headers: expect.anything(),
    body: { status: 'ready', settledCount: 0, failedCount: 0, payoutCount: 1 },
  })
})

const FORBIDDEN = { status: 403, body: { error: 'employer role required', code: 'employer-required' } }

test('omits the batches of other organisations', async () => {
  await Promise.all([create(ada), create(eve)])
  const [hers, others] = await Promise.all(
    [ada, eve].map(async (user) => (await user.ask<{ batches: Batch[] }>('GET', '/batches')).body.batches),
  )
  expect(hers?.length).toBeGreaterThan(0)
  expect(others?.length).toBeGreaterThan(0)
  expect(hers?.filter(({ id }) => others?.some((other) => other.id === id))).toEqual([])
})

test('turns a user with only an unsolicited invite into an employer when the user creates a batch', async () => {
  const sub = pair('invited against their will').publicKey()
  await ada.engage('a guess', { address: sub, status: 'invited' })
  const user = await openUser(service, { kind: 'ledger', sub })
  // A request whose body is refused doesn't count as a write.
  for (const body of [{}, '{']) expect((await user.ask('POST', '/batches', body)).status).toBe(400)
  expect(await user.ask('GET', '/batches')).toMatchObject(FORBIDDEN)
  const created = await user.ask<Batch>('POST', '/batches', { name: 'my own' })
  expect(created.status).toBe(200)
  expect(await user.ask<{ batches: Batch[] }>('GET', '/batches')).toMatchObject({ body: { batches: [created.body] } })
})
