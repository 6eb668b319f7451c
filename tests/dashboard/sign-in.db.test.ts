import { like, sql } from 'drizzle-orm'
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest'
import { auditLog } from '#drizzle/schema/audit.ts'
import {
  composeOperator,
  mintBrowser,
  mintOperatorSession,
  OPERATOR_SESSION_SECONDS,
  type OperatorSettings,
  readBrowser,
  readOperatorSession,
} from '#lib/auth/operator.ts'
import { drawSkip, signInOperator, waitAfter } from '#lib/auth/operator-sign-in.ts'
import type { Database } from '#lib/db/connection.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { cloneDatabase } from '../support/database.ts'

const SECRET = 'a secret of the operator tests, 32 bytes and more'
const NOW = new Date('2026-11-20T12:00:00Z')
const later = (seconds: number, from = NOW) => new Date(from.getTime() + seconds * 1000)

function compose(password: string | undefined, embeddedSecret?: string, secret = SECRET): OperatorSettings {
  const settings = composeOperator(secret, { password, embeddedSecret })
  if (!settings) throw new Error('the dashboard is closed')
  return settings
}
const settings = compose('correct horse')

describe('the password', () => {
  test('is the configured one, derived from the embedded keys, or absent', () => {
    expect(settings).toMatchObject({ password: 'correct horse', isDerived: false })
    const derived = compose(undefined, 'embedded')
    expect(derived).toMatchObject({
      password: expect.stringMatching(/^([0-9a-hjkmnp-tv-z]{4}-){3}[0-9a-hjkmnp-tv-z]{4}$/),
      isDerived: true,
    })
    expect(compose(undefined, 'embedded').password).toBe(derived.password)
    expect(compose(undefined, 'another').password).not.toBe(derived.password)
    expect(compose('correct horse', 'embedded')).toMatchObject({ password: 'correct horse', isDerived: false })
    expect(composeOperator(SECRET, { password: undefined, embeddedSecret: undefined })).toBeUndefined()
  })
})

describe('a session', () => {
  test('is valid until it expires', async () => {
    const token = await mintOperatorSession(settings, 'Ada', NOW)
    expect(await readOperatorSession(settings, token, NOW)).toBe('Ada')
    expect(await readOperatorSession(settings, token, later(OPERATOR_SESSION_SECONDS - 1))).toBe('Ada')
    expect(await readOperatorSession(settings, token, later(OPERATOR_SESSION_SECONDS))).toBeUndefined()
  })

  test.each<[string, () => Promise<string | undefined>]>([
    ['none', async () => undefined],
    ['empty', async () => ''],
    ['no token', async () => 'x.y.z'],
    ['endless', async () => 'x'.repeat(100_000)],
    ['of another password', () => mintOperatorSession(compose('another horse'), 'Ada', NOW)],
    ['of another service', () => mintOperatorSession(compose('correct horse', undefined, `${SECRET}!`), 'Ada', NOW)],
    ['the cookie that identifies a browser', () => mintBrowser(settings, 'a browser', NOW)],
    ['changed', async () => `${await mintOperatorSession(settings, 'Ada', NOW)}A`],
  ])('is rejected: %s', async (_, token) => {
    expect(await readOperatorSession(settings, await token(), NOW)).toBeUndefined()
  })

  test('does not identify a browser', async () => {
    expect(await readBrowser(settings, await mintOperatorSession(settings, 'Ada', NOW), NOW)).toBeUndefined()
    expect(await readBrowser(settings, await mintBrowser(settings, 'a browser', NOW), NOW)).toBe('a browser')
  })
})

test.each([
  [0, 0],
  [4, 0],
  [5, 2],
  [6, 4],
  [9, 32],
  [10, 60],
  [1000, 60],
])('delays an attempt after %i wrong ones by %i seconds', (wrong, seconds) => {
  expect(waitAfter(wrong)).toBe(seconds)
})

describe('signing in', () => {
  let postgres: Awaited<ReturnType<typeof cloneDatabase>>
  let db: Database
  beforeAll(async () => {
    postgres = await cloneDatabase()
    db = await postgres.store.database()
  })
  afterAll(() => postgres.drop())

  // Each test begins two hours after the previous one, whose attempts no longer count.
  let start = NOW
  beforeEach(() => {
    start = later(7_200, start)
  })

  const attempt = async (password: string, now: Date, browser?: string, client?: string, skipsWait = false) => {
    try {
      const context = { settings, database: async () => db, now }
      return await signInOperator(context, { name: 'Ada', password, from: { browser, client }, skipsWait })
    } catch (error) {
      if (error instanceof Refusal) return { code: error.code, retryAfter: error.retryAfter }
      throw error
    }
  }
  const WRONG = { code: 'unauthenticated', retryAfter: undefined }
  const wait = (seconds: number) => ({ code: 'too-soon', retryAfter: seconds })

  test('sets cookies only for the right password, and adds each attempt to the audit log', async () => {
    for (const tried of ['', 'correct hors', 'correct horse ', 'Correct horse']) {
      expect(await attempt(tried, start)).toEqual(WRONG)
    }
    const cookies = await attempt('correct horse', start)
    if (!('session' in cookies)) throw new Error('not admitted')
    expect(await readOperatorSession(settings, cookies.session, start)).toBe('Ada')
    const noted = await db.select().from(auditLog).where(like(auditLog.action, 'operator.%'))
    expect(noted.map(({ action }) => action)).toEqual([...Array(4).fill('operator.rejected'), 'operator.admitted'])
    // Only the right password vouches for a name.
    expect(noted.map(({ actorSub }) => actorSub)).toEqual([...Array(4).fill('dashboard'), 'Ada'])
    expect(JSON.stringify(noted)).not.toMatch(/horse/i)
  })

  test('slows down after five wrong attempts, without prolonging the wait for attempts during it', async () => {
    for (let tries = 0; tries < 5; tries += 1) expect(await attempt('wrong', start)).toEqual(WRONG)
    expect(await attempt('wrong', start)).toEqual(wait(2))
    expect(await attempt('wrong', later(1, start))).toEqual(wait(1))
    expect(await attempt('wrong', later(2, start))).toEqual(WRONG)
    expect(await attempt('wrong', later(5, start))).toEqual(wait(1))
    expect(await attempt('correct horse', later(6, start))).toHaveProperty('session')
    expect(await attempt('wrong', later(6, start))).toEqual(WRONG)
  })

  test('accepts a right password that was drawn at random despite any number of wrong attempts', async () => {
    for (let tries = 0; tries < 12; tries += 1) await attempt('wrong', later(tries * 60, start))
    const moment = later(12 * 60, start)
    const flood = Array.from({ length: 20 }, () => attempt('wrong', moment))
    const attempts = [
      attempt('correct horse', moment),
      attempt('wrong', moment, undefined, undefined, true),
      attempt('correct horse', moment, undefined, undefined, true),
    ]
    const [late, wrong, right] = await Promise.all(attempts)
    expect([late, wrong]).toEqual([wait(1), wait(1)])
    expect(right).toHaveProperty('session')
    expect((await Promise.all(flood)).filter((answer) => 'session' in answer)).toEqual([])
  })

  test('waits at most a minute', async () => {
    for (let tries = 0; tries < 30; tries += 1) expect(await attempt('wrong', later(tries * 60, start))).toEqual(WRONG)
    expect(await attempt('correct horse', later(29 * 60, start))).toEqual(wait(60))
    expect(await attempt('correct horse', later(30 * 60, start))).toHaveProperty('session')
  })

  test('draws some attempts at random, but not all', () => {
    const drawn = Array.from({ length: 1_000 }, drawSkip).filter(Boolean)
    expect(drawn.length).toBeGreaterThan(20)
    expect(drawn.length).toBeLessThan(500)
  })

  test('checks one of twenty concurrent attempts, and refuses the others', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => attempt('wrong', start)))
    expect(answers).toEqual(expect.arrayContaining([WRONG, ...Array(19).fill(wait(1))]))
    expect(answers.filter((answer) => 'code' in answer && answer.code === 'unauthenticated')).toHaveLength(1)
  })

  test.runIf(inject('postgres'))('refuses an attempt immediately while another process checks one', async () => {
    const others = await postgres.store.database()
    const blocker = Promise.withResolvers<void>()
    const tried = Promise.withResolvers<unknown>()
    await others.transaction(async (tx) => {
      await tx.execute(sql`select pg_advisory_xact_lock(722013, hashtext('a new browser'))`)
      tried.resolve(await attempt('correct horse', start))
      blocker.resolve()
    })
    await blocker.promise
    expect(await tried.promise).toEqual(wait(1))
  })

  test('counts each client address separately', async () => {
    for (let tries = 0; tries < 6; tries += 1) await attempt('wrong', start, undefined, '192.0.2.1')
    expect(await attempt('wrong', start, undefined, '192.0.2.1')).toEqual(wait(2))
    expect(await attempt('correct horse', start, undefined, '192.0.2.2')).toHaveProperty('session')
    const noted = await db.select({ door: auditLog.subjectId }).from(auditLog)
    expect(JSON.stringify(noted)).not.toContain('192.0.2')
  })

  test('counts the attempts of a browser that signed in before separately, and does not delay it because of others', async () => {
    const cookies = await attempt('correct horse', start)
    if (!('browser' in cookies)) throw new Error('not admitted')
    for (let tries = 0; tries < 6; tries += 1) await attempt('wrong', start)
    expect(await attempt('wrong', start)).toEqual(wait(2))
    expect(await attempt('correct horse', start, 'forged')).toEqual(wait(2))
    expect(await attempt('correct horse', start, cookies.browser)).toHaveProperty('session')
    for (let tries = 0; tries < 5; tries += 1) expect(await attempt('wrong', start, cookies.browser)).toEqual(WRONG)
    expect(await attempt('wrong', start, cookies.browser)).toEqual(wait(2))
  })
})
