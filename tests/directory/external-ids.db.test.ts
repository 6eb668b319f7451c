import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Answer, Method } from '../support/api-client.ts'
import { accountOf, atNoon, fieldsOf, idOf, keyOf } from '../support/directory.ts'
import { openTestService, type TestService } from '../support/test-service.ts'

const SEED = 'SAKICEVQLYWGSOJS4WW7HZJWAHZVEEBS527LHK5V4MLJALYKICQCJXMW'

let service: TestService<'fake'>
let session: string
let employers = 60_000
let payees = 70_000
beforeAll(async () => {
  service = await openTestService(atNoon())
})
afterAll(() => service.close())
beforeEach(async () => {
  employers += 1
  session = await service.wallet(accountOf(employers))
})

const ask = <Body = Record<string, unknown>>(method: Method, path: string, body?: unknown) =>
  service.ask<Body>(method, path, { session, ...(body !== undefined && { body }) })
const idsOf = (answer: Answer, list: string) => fieldsOf(answer, list, 'id')

/** Creates a contractor who can be paid. */
async function hire(externalId?: string): Promise<string> {
  payees += 1
  service.ledger.register(accountOf(payees), keyOf(payees))
  return idOf(await ask('POST', '/contractors', { name: 'Ann', address: accountOf(payees), externalId }))
}

const BAD: [string, unknown][] = [
  ['a space', 'a b'],
  ['another script', 'ключ'],
  ['101 characters', 'x'.repeat(101)],
  ['an address', `x/${accountOf(1)}`],
  ['an address in lower case', accountOf(1).toLowerCase()],
  ['a muxed address', `M${accountOf(1)}AAAAAAAAAAAA2`],
  ['a seed', SEED],
  ['a number', 7],
]

describe('an invalid external id', () => {
  test.each(BAD)('is refused: %s', async (_, externalId) => {
    const contractor = await ask('POST', '/contractors', { name: 'Ann', externalId })
    const batch = await ask('POST', '/batches', { name: 'March', externalId })
    const id = await hire()
    const changed = await ask('PATCH', `/contractors/${id}`, { externalId })
    const refusal = { status: 400, body: { code: 'external-id-invalid' } }
    expect([contractor, batch, changed]).toMatchObject([refusal, refusal, refusal])
    const imported = await ask('POST', '/contractors/bulk', { rows: [{ name: 'Ann', externalId }] })
    expect(imported.body).toMatchObject({ imported: [], errors: [{ row: 1, code: 'external-id-invalid' }] })
    const draft = idOf(await ask('POST', '/batches', { name: 'March' }))
    const instruction = { contractorId: id, encryptedAmount: 'sealed', externalId }
    const instructed = await ask('POST', `/batches/${draft}/instructions`, { instructions: [instruction] })
    expect(instructed.body).toMatchObject({ payouts: [], errors: [{ contractorId: id }] })
    const [reason] = fieldsOf(instructed, 'errors', 'reason')
    expect(reason).toMatch(/^externalId must be 1 to 100/)
  })

  test.each(['contractors', 'batches', 'payouts'])('is refused as a filter of %s', async (list) => {
    const answer = await ask('GET', `/${list}?externalId=a%20b`)
    expect([answer.status, answer.body.code]).toEqual([400, 'external-id-invalid'])
  })
})

test('is returned, filters lists, and is unique in its organisation', async () => {
  const id = await hire('hr/1')
  await hire()
  expect((await ask('GET', `/contractors/${id}`)).body.externalId).toBe('hr/1')
  expect(idsOf(await ask('GET', '/contractors?externalId=hr/1&limit=5'), 'contractors')).toEqual([id])
  expect(idsOf(await ask('GET', '/contractors?externalId=hr/2'), 'contractors')).toEqual([])
  const again = await ask('POST', '/contractors', { name: 'Bob', externalId: 'hr/1' })
  expect([again.status, again.body]).toEqual([
    409,
    { error: 'another contractor has this externalId', code: 'external-id-taken' },
  ])
  const batch = idOf(await ask('POST', '/batches', { name: 'March', externalId: 'hr/1' }))
  await ask('POST', '/batches', { name: 'April', externalId: null })
  expect((await ask('GET', `/batches/${batch}`)).body.externalId).toBe('hr/1')
  expect(idsOf(await ask('GET', '/batches?externalId=hr/1'), 'batches')).toEqual([batch])
  expect(await ask('POST', '/batches', { name: 'May', externalId: 'hr/1' })).toMatchObject({
    status: 409,
    body: { code: 'external-id-taken', error: 'another batch has this externalId' },
  })
  // Another organisation has its own.
  session = await service.wallet(accountOf(employers + 5_000))
  expect((await ask('POST', '/contractors', { name: 'Ann', externalId: 'hr/1' })).status).toBe(200)
  expect((await ask('POST', '/batches', { name: 'March', externalId: 'hr/1' })).status).toBe(200)
})

test('is changed and cleared by its employer, and free again once its contractor is deleted', async () => {
  const [one, two] = [await hire('a'), await hire('b')]
  const set = (id: string, externalId: string | null) => ask('PATCH', `/contractors/${id}`, { externalId })
  expect(await set(two, 'a')).toMatchObject({ status: 409, body: { code: 'external-id-taken' } })
  expect((await set(one, null)).body.externalId).toBeUndefined()
  expect((await set(two, 'a')).body.externalId).toBe('a')
  await ask('DELETE', `/contractors/${two}`)
  expect((await set(one, 'a')).body.externalId).toBe('a')
})

test('lets an import be repeated', async () => {
  const rows = [
    { name: 'Ann', externalId: 'a' },
    { name: 'Bob', externalId: 'b', email: 'bob@b.example' },
    { name: 'Cid', externalId: 'a' },
    { name: 'Dot', externalId: '' },
  ]
  const first = await ask('POST', '/contractors/bulk', { rows })
  const taken = { row: 3, code: 'external-id-taken', reason: 'another contractor has this externalId' }
  expect(first.body).toMatchObject({ imported: [{ name: 'Ann' }, { name: 'Bob' }, {}], existing: [], errors: [taken] })
  const [ann, bob] = idsOf(first, 'imported')
  const more = [{ name: 'Eve', externalId: 'e' }, ...rows.slice(0, 3), { name: 'Fay', email: 'BOB@b.example' }]
  const second = await ask('POST', '/contractors/bulk', { rows: more })
  expect(second.body).toMatchObject({
    imported: [{ name: 'Eve', externalId: 'e' }],
    existing: [ann, bob],
    errors: [
      { ...taken, row: 4 },
      { row: 5, code: 'email-taken' },
    ],
  })
  expect(idsOf(await ask('GET', '/contractors'), 'contractors')).toHaveLength(4)
})

test('creates each record once for concurrent imports and instructions', async () => {
  const rows = [
    { name: 'Ann', externalId: 'a' },
    { name: 'Bob', externalId: 'b' },
  ]
  const imports = await Promise.all(Array.from({ length: 6 }, () => ask('POST', '/contractors/bulk', { rows })))
  expect(imports.flatMap((answer) => fieldsOf(answer, 'imported', 'name')).toSorted()).toEqual(['Ann', 'Bob'])
  expect(imports.flatMap(({ body }) => body.existing)).toHaveLength(10)
  const payee = await hire()
  const batches = []
  for (const name of ['March', 'April', 'May']) batches.push(idOf(await ask('POST', '/batches', { name })))
  const instructions = [{ contractorId: payee, externalId: 'p', encryptedAmount: 'x' }]
  const twice = [...batches, ...batches]
  const answers = await Promise.all(twice.map((id) => ask('POST', `/batches/${id}/instructions`, { instructions })))
  const [payout, ...others] = answers.flatMap((answer) => idsOf(answer, 'payouts'))
  expect(others).toEqual([])
  expect(answers.flatMap(({ body }) => body.existing)).toEqual([payout])
  const reasons = answers.flatMap((answer) => fieldsOf(answer, 'errors', 'reason'))
  expect(reasons).toEqual(Array(4).fill('another payout has this externalId'))
})

test('cannot be changed by the contractor', async () => {
  const id = await hire('hr/1')
  const invite = await ask('POST', `/contractors/${id}/invite`)
  const payee = await service.wallet(accountOf(payees))
  const token = String(invite.body.inviteUrl).split('/').at(-1)
  const accepted = await service.ask('POST', `/invites/${token}/accept`, { session: payee })
  expect([accepted.status, accepted.body.externalId]).toEqual([200, 'hr/1'])
  const body = { externalId: 'mine' }
  const changed = await service.ask('PATCH', `/contractors/${id}`, { session: payee, body })
  expect([changed.status, changed.body.code]).toEqual([403, 'employer-required'])
})

test('lets instructions be repeated in their batch, and only there', async () => {
  const [ann, bob] = [await hire(), await hire()]
  const [march, april] = [
    idOf(await ask('POST', '/batches', { name: 'March' })),
    idOf(await ask('POST', '/batches', { name: 'April' })),
  ]
  const instruct = (id: string, ...list: [contractorId: string, externalId: string][]) => {
    const instructions = list.map(([contractorId, externalId]) => ({ contractorId, externalId, encryptedAmount: 'x' }))
    return ask('POST', `/batches/${id}/instructions`, { instructions })
  }
  const first = await instruct(march, [ann, 'p/1'])
  expect(first.body).toMatchObject({ payouts: [{ externalId: 'p/1' }], existing: [], errors: [] })
  const [payout] = idsOf(first, 'payouts')
  const taken = (contractorId: string) => ({ contractorId, reason: 'another payout has this externalId' })
  const second = await instruct(march, [bob, 'p/2'], [ann, 'p/1'])
  expect(second.body).toMatchObject({ payouts: [{ contractorId: bob }], existing: [payout], errors: [] })
  expect((await instruct(april, [ann, 'p/1'], [bob, 'p/3'], [ann, 'p/3'])).body).toMatchObject({
    payouts: [{ externalId: 'p/3' }],
    existing: [],
    errors: [taken(ann), taken(ann)],
  })
  // An external id that names another contractor is a mistake, not a repetition.
  expect((await instruct(march, [bob, 'p/1'])).body).toMatchObject({ payouts: [], existing: [], errors: [taken(bob)] })
  expect(idsOf(await ask('GET', '/payouts?externalId=p/1'), 'payouts')).toEqual([payout])
  // A repetition does not make a payout again that was canceled since, or whose contractor cannot be paid any more.
  await ask('DELETE', `/payouts/${payout}`)
  expect((await instruct(march, [ann, 'p/1'])).body).toEqual({ payouts: [], existing: [payout], errors: [] })
  await ask('DELETE', `/contractors/${bob}`)
  expect((await instruct(march, [bob, 'p/2'])).body).toMatchObject({ payouts: [], errors: [] })
})
