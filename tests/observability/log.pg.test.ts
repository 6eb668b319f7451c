import { PGlite } from '@electric-sql/pglite'
import { sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/pglite'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { describeFailure, log } from '#lib/observability/log.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { cloneDatabase } from '../support/database.ts'

const SECRET = 'hunter2'

afterEach(() => {
  vi.restoreAllMocks()
})

describe('log', () => {
  test('writes info to standard output and errors to standard error, as one JSON line each', () => {
    const out = vi.spyOn(console, 'log').mockReturnValue()
    const err = vi.spyOn(console, 'error').mockReturnValue()
    log('info', 'request', { path: '/api\n{"level":"error"}', absent: undefined })
    log('error', 'failure')
    expect([out.mock.calls.length, err.mock.calls.length]).toEqual([1, 1])
    const line = String(out.mock.calls[0]?.[0])
    expect(line).not.toContain('\n')
    expect(JSON.parse(line)).toEqual({
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      level: 'info',
      event: 'request',
      path: '/api\n{"level":"error"}',
    })
  })
})

describe('describeFailure', () => {
  test('includes the stacks of an error and its causes', () => {
    const described = describeFailure(
      new Refusal('unavailable', 'away', {
        cause: new TypeError('fetch failed', { cause: new Error('ECONNREFUSED') }),
      }),
    )
    expect(described).toMatch(/^Refusal: away\n {4}at .*caused by TypeError: fetch failed\n.*caused by Error: ECONN/s)
  })

  test.each([
    [{ code: -32602, message: 'invalid params', data: SECRET }, '-32602: invalid params'],
    [{ token: SECRET }, 'undefined: undefined'],
    ['text', 'text'],
    [undefined, 'undefined'],
    [null, 'null'],
  ])('%j', (thrown, described) => {
    expect(describeFailure(thrown)).toBe(described)
  })
})

describe('describes a failed query without its parameters', () => {
  let postgres: Awaited<ReturnType<typeof cloneDatabase>>
  const embedded = new PGlite('memory://')
  beforeAll(async () => {
    postgres = await cloneDatabase()
  })
  afterAll(async () => {
    await embedded.close()
    await postgres.drop()
  })

  const queries = [
    ['a value of the wrong type', sql`SELECT ${SECRET}::uuid`, '22P02'],
    ['a number that is too large', sql`SELECT ${`${SECRET}`}::int`, '22P02'],
    ['a missing relation', sql`SELECT ${SECRET}::text FROM nowhere`, '42P01'],
    ['a syntax error', sql`SELEC ${SECRET}`, '42601'],
  ] as const

  test.each(queries)('%s', async (_, query, state) => {
    for (const db of [await postgres.store.database(), drizzle(embedded)]) {
      const failure = await db.execute(query).then(
        () => undefined,
        (error: unknown) => error,
      )
      const described = describeFailure(failure)
      expect(described).toContain('Failed query: SELEC')
      expect(described).toContain(state)
      expect(described).toMatch(/\n {4}at /)
      expect(described).not.toContain(SECRET)
    }
  })

  test('keeps the reason of a rejection that quotes no value', async () => {
    const db = await postgres.store.database()
    const failure = await db.execute(sql`SELECT ${SECRET}::text FROM nowhere`).catch((error: unknown) => error)
    expect(describeFailure(failure)).toContain('42P01: relation "nowhere" does not exist')
  })
})
