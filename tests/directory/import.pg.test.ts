import { sql } from 'drizzle-orm'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { auditLog } from '#drizzle/schema/audit.ts'
import { mapInTurns } from '#lib/directory/contractors/import.ts'
import type { Answer } from '../support/api-client.ts'
import { captureLog } from '../support/console.ts'
import { accountOf, atNoon, fieldsOf, keyOf, NOW } from '../support/directory.ts'
import { openTestService, type TestService } from '../support/test-service.ts'

let service: TestService<'fake'>
let session: string
let logged: string[]
let employers = 2_000

beforeAll(async () => {
  service = await openTestService(atNoon())
})
afterAll(() => service.close())
beforeEach(async () => {
  logged = captureLog()
  employers += 1
  session = await service.wallet(accountOf(employers))
  Object.assign(service.ledger, { fault: undefined, requests: [] })
})
afterEach(() => {
  vi.restoreAllMocks()
})

const bring = (rows: unknown) => service.ask('POST', '/contractors/bulk', { session, body: { rows } })
const imported = (answer: Answer, field: string) => fieldsOf(answer, 'imported', field)
const seed = 'SAKICEVQLYWGSOJS4WW7HZJWAHZVEEBS527LHK5V4MLJALYKICQCJXMW'

test('imports valid rows, and reports the error of each invalid one', async () => {
  service.ledger.register(accountOf(1), keyOf(1))
  const answer = await bring([
    { name: 'Ann', email: 'ann@b.example', address: accountOf(1), amount: 1500.5 },
    { name: '' },
    { name: 'Bob', address: accountOf(2) },
    { name: 'Cid', email: 'nobody' },
    { name: 'Dot' },
  ])
  expect(answer.status).toBe(200)
  const fixed = { id: expect.any(String), createdAt: NOW.toISOString() }
  expect(answer.body).toEqual({
    imported: [
      {
        ...fixed,
        name: 'Ann',
        status: 'ready',
        email: 'ann@b.example',
        address: accountOf(1),
        pvk: keyOf(1),
        rate: { amount: '1500.5', currency: 'USDC' },
      },
      { ...fixed, name: 'Bob', status: 'invited', address: accountOf(2) },
      { ...fixed, name: 'Dot', status: 'invited' },
    ],
    errors: [
      { row: 2, code: 'name-required', reason: 'name required' },
      { row: 4, code: 'email-invalid', reason: 'email must be an email address' },
    ],
  })
  expect(service.ledger.requests).toEqual([2])
  expect(fieldsOf(await service.ask('GET', '/contractors', { session }), 'contractors', 'name')).toEqual([
    'Dot',
    'Bob',
    'Ann',
  ])
})

test('reports an error for a row with a secret seed, and stores the seed nowhere', async () => {
  const answer = await bring([{ name: seed }, { name: 'A', email: seed }, { name: 'A', address: seed }, null])
  expect([answer.status, fieldsOf(answer, 'errors', 'row')]).toEqual([200, [1, 2, 3, 4]])
  expect(JSON.stringify(answer.body)).not.toContain(seed)
  expect(logged.join('\n')).not.toContain(seed)
})

test('returns two empty lists for an import without rows', async () => {
  expect((await bring([])).body).toEqual({ imported: [], errors: [] })
})

test('accepts the first valid row of several with the same email or address', async () => {
  await service.ask('POST', '/contractors', {
    session,
    body: { name: 'Old', email: 'old@b.example', address: accountOf(3) },
  })
  const answer = await bring([
    { name: 'x', email: 'new@b.example', amount: 0 },
    { name: 'a', email: 'New@b.example' },
    { name: 'b', email: 'NEW@B.example' },
    { name: 'c', address: accountOf(4) },
    { name: 'd', address: accountOf(4) },
    { name: 'e', email: 'OLD@b.example' },
    { name: 'f', address: accountOf(3) },
    { name: 'g', email: 'g@b.example', address: accountOf(4) },
    { name: 'h', email: 'g@b.example' },
  ])
  expect(imported(answer, 'name')).toEqual(['a', 'c', 'h'])
  expect(answer.body.errors).toEqual([
    { row: 1, code: 'amount-invalid', reason: 'amount must be a positive decimal with at most 7 decimals' },
    { row: 3, code: 'email-taken', reason: 'another contractor has this email' },
    { row: 5, code: 'address-taken', reason: 'another contractor has this address' },
    { row: 6, code: 'email-taken', reason: 'another contractor has this email' },
    { row: 7, code: 'address-taken', reason: 'another contractor has this address' },
    { row: 8, code: 'address-taken', reason: 'another contractor has this address' },
  ])
})

test('creates every row once when two imports of the same rows run concurrently', async () => {
  const rows = Array.from({ length: 50 }, (_, n) => ({ name: `${n}`, email: `n${n}@b.example` }))
  const answers = await Promise.all([bring(rows), bring([...rows].reverse()), bring(rows)])
  const created = answers.flatMap((answer) => imported(answer, 'email'))
  expect(created.toSorted()).toEqual(rows.map(({ email }) => email).toSorted())
  for (const answer of answers)
    expect(imported(answer, 'id').length + fieldsOf(answer, 'errors', 'row').length).toBe(50)
})

describe('the largest body', () => {
  const LIMIT = 256 * 1024

  test('makes one lookup per 200 addresses, and one audit entry per row', async () => {
    const rows = Array.from({ length: 2_000 }, (_, n) => ({ name: `n${n}`, address: accountOf(10_000 + (n % 1_950)) }))
    service.ledger.register(accountOf(10_000), keyOf(10_000))
    service.ledger.register(accountOf(11_949), keyOf(11_949))
    expect(JSON.stringify({ rows }).length).toBeLessThan(LIMIT)
    const answer = await bring(rows)
    expect(imported(answer, 'name')).toHaveLength(1_950)
    expect(fieldsOf(answer, 'errors', 'row')).toEqual(Array.from({ length: 50 }, (_, n) => 1_951 + n))
    expect(service.ledger.requests).toEqual([...Array<number>(9).fill(200), 150])
    const statuses = imported(answer, 'status')
    expect([statuses[0], statuses[1], statuses.at(-1)]).toEqual(['ready', 'invited', 'ready'])
    const entries = await service.db.select({ id: auditLog.subjectId }).from(auditLog)
    const audited = new Set(entries.map(({ id }) => id))
    expect(imported(answer, 'id').every((id) => audited.has(String(id)))).toBe(true)
  })

  test('accepts at most 2,000 rows', async () => {
    const rows = Array.from({ length: 2_000 }, () => ({ name: 'a' }))
    const answer = await bring(rows)
    expect([answer.status, imported(answer, 'id').length]).toEqual([200, 2_000])
    const newest = imported(answer, 'id').reverse()
    // Without a limit, a list returns 1,000 records and links to the rest.
    const whole = await service.ask('GET', '/contractors', { session })
    expect(fieldsOf(whole, 'contractors', 'id')).toEqual(newest.slice(0, 1_000))
    const rest = /^<([^>]*)>; rel="next"$/.exec(whole.headers.get('link') ?? '')?.[1]
    const next = await service.ask('GET', `/contractors${rest}`, { session })
    expect(fieldsOf(next, 'contractors', 'id')).toEqual(newest.slice(1_000, 2_000))
    const more = await bring([...rows, { name: 'b' }])
    const error = 'rows must have at most 2,000 rows; send the others in another request'
    expect([more.status, more.body.error]).toEqual([400, error])
  })

  test('is read in turns of the event loop, and other requests are served in between', async () => {
    let turns = 0
    const rows = Array.from({ length: 2_000 }, (_, index) => index)
    const slow = (row: number) => {
      for (const until = performance.now() + 0.05; performance.now() < until; );
      return row * 2
    }
    const timer = setInterval(() => {
      turns += 1
    }, 1)
    expect(await mapInTurns(rows, slow)).toEqual(rows.map((row) => row * 2))
    clearInterval(timer)
    expect(turns).toBeGreaterThan(0)
  })

  test('is refused if it is one byte over 256 KiB', async () => {
    const text = JSON.stringify({ rows: [{ name: 'a' }] })
    const most = await service.ask('POST', '/contractors/bulk', { session, body: text.padEnd(LIMIT) })
    expect(most.status).toBe(200)
    const answer = await service.ask('POST', '/contractors/bulk', { session, body: text.padEnd(LIMIT + 1) })
    expect([answer.status, answer.body]).toEqual([413, { error: 'the body is larger than 256 KiB', code: 'too-large' }])
  })
})

test('limits an organisation to 50,000 contractors', async () => {
  const FULL = 'an organisation has at most 50,000 contractors; remove some first'
  const first = await service.ask('POST', '/contractors', { session, body: { name: 'first' } })
  await service.db.execute(sql`INSERT INTO contractors (organisation, name, status, invite_expires_at)
    SELECT organisation, 'n' || n, 'inactive', now() FROM contractors, generate_series(2, 49998) n
    WHERE id = ${first.body.id}`)
  const answers = await Promise.all([bring([{ name: 'a' }, { name: '' }, { name: 'b' }]), bring([{ name: 'c' }])])
  expect(answers.flatMap((answer) => imported(answer, 'name'))).toHaveLength(2)
  const errors = answers.flatMap(({ body }) => body.errors as { reason: string }[])
  expect(errors.map(({ reason }) => reason).toSorted()).toEqual([FULL, 'name required'])
  const one = await service.ask('POST', '/contractors', { session, body: { name: 'd' } })
  expect([one.status, one.body.error]).toEqual([409, FULL])
  await service.ask('DELETE', `/contractors/${first.body.id}`, { session })
  expect((await service.ask('POST', '/contractors', { session, body: { name: 'd' } })).status).toBe(200)
  expect(
    (
      await service.ask('POST', '/contractors', {
        session: await service.wallet(accountOf(1_999)),
        body: { name: 'e' },
      })
    ).status,
  ).toBe(200)
})

test('invites all contractors while the ledger is unreachable, and tries it once', async () => {
  service.ledger.fault = 'http-503'
  const rows = Array.from({ length: 500 }, (_, n) => ({ name: `n${n}`, address: accountOf(20_000 + n) }))
  const answer = await bring(rows)
  expect(new Set(imported(answer, 'status'))).toEqual(new Set(['invited']))
  expect(service.ledger.requests).toEqual([200])
})
