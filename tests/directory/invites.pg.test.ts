import { eq } from 'drizzle-orm'
import { renderToStaticMarkup } from 'react-dom/server'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { InviteCard } from '#app/invite/[token]/invite-card.tsx'
import { auditLog } from '#drizzle/schema/audit.ts'
import { contractors } from '#drizzle/schema/directory.ts'
import { inviteToken, readInviteToken } from '#lib/directory/contractors/invite-token.ts'
import { findInvite } from '#lib/directory/contractors/invites.ts'
import type { Answer } from '../support/api-client.ts'
import { captureLog } from '../support/console.ts'
import { accountOf, atNoon, contextOf, idOf, keyOf, NOW } from '../support/directory.ts'
import { openTestService, type TestService } from '../support/test-service.ts'
import { type EmailProvider, startEmailProvider } from './email-provider.ts'

let service: TestService<'fake'>
let logged: string[]
let provider: EmailProvider
let users = 6_000
let employer: string

beforeAll(async () => {
  provider = await startEmailProvider()
  const variables = { ...provider.variables, FRONTEND_URL: 'https://app.example/payroll/' }
  service = await openTestService(atNoon(variables))
})
afterAll(async () => {
  await service.close()
  await provider.close()
})
beforeEach(async () => {
  logged = captureLog()
  service.clock.now = NOW
  service.ledger.fault = undefined
  employer = (await newcomer()).session
})
afterEach(() => {
  vi.restoreAllMocks()
})

async function newcomer() {
  users += 1
  return { address: accountOf(users), session: await service.wallet(accountOf(users)) }
}
const create = async (body: object) => idOf(await service.ask('POST', '/contractors', { session: employer, body }))
const patch = (id: string, body: object) => service.ask('PATCH', `/contractors/${id}`, { session: employer, body })
const refused = ({ status, body }: Answer) => [status, body.error]
const accept = (session: string, token: string) => service.ask('POST', `/invites/${token}/accept`, { session })
async function invite(id: string): Promise<string> {
  const { status, body } = await service.ask('POST', `/contractors/${id}/invite`, { session: employer })
  expect(status).toBe(200)
  return String(body.inviteUrl).replace('https://app.example/payroll/invite/', '')
}

describe('POST /contractors/{id}/invite', () => {
  test('returns a link to the frontend, and stores no token', async () => {
    const id = await create({ name: 'Ann' })
    const { body } = await service.ask('POST', `/contractors/${id}/invite`, { session: employer })
    expect(body).toEqual({ inviteUrl: expect.stringMatching(/^https:\/\/app\.example\/payroll\/invite\/[\w-]{70}$/) })
    const token = String(body.inviteUrl).split('/').at(-1) ?? ''
    const rows = [...(await service.db.select().from(contractors)), ...(await service.db.select().from(auditLog))]
    expect(JSON.stringify(rows)).not.toContain(token)
    await accept(employer, token)
    expect(logged.join('\n')).not.toContain(token)
  })

  test.each(['invited', 'onboarding', 'ready'])('works for a contractor that is %s', async (status) => {
    const id = await create({ name: 'Ann' })
    await patch(id, { status })
    expect(await invite(id)).toHaveLength(70)
  })

  test('is refused for an inactive contractor', async () => {
    const id = await create({ name: 'Ann' })
    await patch(id, { status: 'inactive' })
    expect(refused(await service.ask('POST', `/contractors/${id}/invite`, { session: employer }))).toEqual([
      409,
      'contractor is inactive',
    ])
  })

  test('is refused for a linked record, which the bearer of a new link could otherwise take over', async () => {
    const id = await create({ name: 'Ann' })
    const { session, address } = await newcomer()
    await accept(session, await invite(id))
    expect(refused(await service.ask('POST', `/contractors/${id}/invite`, { session: employer }))).toEqual([
      409,
      'contractor has accepted already',
    ])
    const [row] = await service.db.select().from(contractors).where(eq(contractors.id, id))
    expect(row).toMatchObject({ linkedSub: address, inviteVersion: 1 })
  })
})

describe('POST /invites/{token}/accept', () => {
  test.each<[string, object, () => Promise<string>]>([
    ['an email, by a wallet', { email: 'hal@b.example' }, async () => (await newcomer()).session],
    ['an email, by a user without a verified one', { email: 'hal@b.example' }, () => service.user('hal')],
    ['an address, by another', { address: accountOf(98_000) }, async () => (await newcomer()).session],
    ['an address, by email', { address: accountOf(98_001) }, () => service.user('ida', 'ida@b.example')],
  ])('refuses a record with %s', async (_, fields, signIn) => {
    const token = await invite(await create({ name: 'Hal', ...fields }))
    expect(refused(await accept(await signIn(), token))).toEqual([403, 'this invite is for another email or account'])
  })

  test.each<[string, (address: string) => Promise<string>]>([
    ['the address', (address) => service.wallet(address)],
    ['the email', () => service.user('jo', 'JO@b.example')],
  ])('accepts a record with address and email from a user who proves %s', async (_, signIn) => {
    const { address } = await newcomer()
    const token = await invite(await create({ name: 'Jo', address, email: 'jo@b.example' }))
    expect((await accept(await signIn(address), token)).status).toBe(200)
  })

  test('refuses a record with an email to a user with the same email, unverified', async () => {
    const email = 'kim@b.example'
    const signIn = (verified: boolean) => provider.signIn(service, { sub: 'kim', email, verified })
    const id = await create({ name: 'Kim', email })
    const token = await invite(id)
    expect(refused(await accept(await signIn(false), token))).toEqual([
      403,
      'this invite is for another email or account',
    ])
    const [row] = await service.db.select().from(contractors).where(eq(contractors.id, id))
    expect(row).toMatchObject({ linkedSub: null, inviteAcceptedAt: null })
    expect((await accept(await signIn(true), token)).status).toBe(200)
  })

  test('links the user to the record, and stores a wallet’s account as its address', async () => {
    const { session, address } = await newcomer()
    const id = await create({ name: 'Ann' })
    const { status, body } = await accept(session, await invite(id))
    expect([status, body]).toEqual([
      200,
      { id, name: 'Ann', status: 'onboarding', address, createdAt: NOW.toISOString() },
    ])
    const [row] = await service.db.select().from(contractors).where(eq(contractors.id, id))
    expect(row).toMatchObject({ linkedKind: 'ledger', linkedSub: address, inviteAcceptedAt: NOW })
  })

  test('marks the contractor as ready immediately if the address is registered', async () => {
    const { session, address } = await newcomer()
    service.ledger.register(address, keyOf(users))
    const { body } = await accept(session, await invite(await create({ name: 'Ann' })))
    expect(body).toMatchObject({ status: 'ready', address, pvk: keyOf(users) })
  })

  test('works while the ledger is unreachable', async () => {
    const { session, address } = await newcomer()
    service.ledger.register(address, keyOf(users))
    service.ledger.fault = 'http-503'
    const { body } = await accept(session, await invite(await create({ name: 'Ann' })))
    expect([body.status, body.pvk]).toEqual(['onboarding', undefined])
  })

  test('stores no address for a user of an identity provider', async () => {
    const id = await create({ name: 'Ann', email: 'fay@b.example' })
    const { body } = await accept(await service.user('fay', 'FAY@b.example'), await invite(id))
    expect([body.status, body.address]).toEqual(['onboarding', undefined])
  })

  test('keeps a status that is past onboarding', async () => {
    const id = await create({ name: 'Ann' })
    await patch(id, { status: 'ready' })
    expect((await accept((await newcomer()).session, await invite(id))).body.status).toBe('ready')
  })

  test('succeeds for one of 20 users who accept concurrently', async () => {
    const people = await Promise.all(Array.from({ length: 20 }, () => newcomer()))
    const id = await create({ name: 'Ann' })
    const token = await invite(id)
    const answers = await Promise.all(people.map(({ session }) => accept(session, token)))
    const winners = people.filter((_, n) => answers[n]?.status === 200)
    expect(winners).toHaveLength(1)
    const losers = answers.filter(({ status }) => status !== 200)
    expect(losers.map(refused)).toEqual(Array.from({ length: 19 }, () => [409, 'invite already accepted']))
    const [row] = await service.db.select().from(contractors).where(eq(contractors.id, id))
    expect(row?.linkedSub).toBe(winners[0]?.address)
    const entries = await service.db.select().from(auditLog).where(eq(auditLog.subjectId, id))
    expect(entries.filter(({ action }) => action === 'contractor.linked')).toHaveLength(1)
  })

  test('succeeds once for one user who accepts 20 times concurrently', async () => {
    const { session } = await newcomer()
    const token = await invite(await create({ name: 'Ann' }))
    const answers = await Promise.all(Array.from({ length: 20 }, () => accept(session, token)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array<number>(19).fill(409)])
  })

  test('expires after 14 days, to the millisecond', async () => {
    const token = await invite(await create({ name: 'Ann' }))
    service.clock.now = new Date(NOW.getTime() + 14 * 86_400_000)
    expect(refused(await accept((await newcomer()).session, token))).toEqual([404, 'invite not found'])
    service.clock.now = new Date(NOW.getTime() + 14 * 86_400_000 - 1)
    expect((await accept((await newcomer()).session, token)).status).toBe(200)
  })

  test.each<[string, (id: string) => Promise<unknown>]>([
    ['a newer invite', (id) => invite(id)],
    ['another email', (id) => patch(id, { email: 'new@b.example' })],
    ['a removed email', (id) => patch(id, { email: null })],
    ['deactivation', (id) => patch(id, { status: 'inactive' })],
    [
      'a reverted deactivation',
      async (id) => [await patch(id, { status: 'inactive' }), await patch(id, { status: 'invited' })],
    ],
    ['removal', (id) => service.ask('DELETE', `/contractors/${id}`, { session: employer })],
  ])('is void after %s', async (_what, after) => {
    const { session } = await newcomer()
    const id = await create({ name: 'Ann', email: 'old@b.example' })
    const token = await invite(id)
    await after(id)
    expect(refused(await accept(session, token))).toEqual([404, 'invite not found'])
  })

  test('does not void an invite when only the case of the email changes', async () => {
    const id = await create({ name: 'Ann', email: 'old@b.example' })
    const token = await invite(id)
    await patch(id, { email: 'Old@B.example' })
    expect((await accept(await service.user('old', 'old@b.example'), token)).status).toBe(200)
  })

  test('accepts only the newest of several invites, and only once', async () => {
    const [first, second] = [await newcomer(), await newcomer()]
    const id = await create({ name: 'Ann' })
    const old = await invite(id)
    const token = await invite(id)
    expect((await accept(first.session, old)).status).toBe(404)
    expect((await accept(first.session, token)).status).toBe(200)
    expect(refused(await accept(second.session, token))).toEqual([409, 'invite already accepted'])
  })

  test('refuses a user of the inviting organisation', async () => {
    const token = await invite(await create({ name: 'Bob' }))
    expect(refused(await accept(employer, token))).toEqual([403, 'this invite is from your own organisation'])
  })

  test('is refused if another contractor of the organisation has the address', async () => {
    const { session, address } = await newcomer()
    await create({ name: 'Ann', address })
    const token = await invite(await create({ name: 'Ann again' }))
    expect(refused(await accept(session, token))).toEqual([409, 'another contractor has this address'])
  })

  test.each([
    ['arbitrary text', 'x'],
    ['an id', '00000000-0000-4000-8000-000000000000'],
    ['of the right length', 'A'.repeat(70)],
    ['very long', 'A'.repeat(10_000)],
    ['percent signs', '%00'],
  ])('responds 404 to a token that is %s', async (_what, token) => {
    expect(refused(await accept(employer, token))).toEqual([404, 'invite not found'])
  })
})

describe('the token', () => {
  const secret = new Uint8Array(32).fill(1)
  const name = { contractor: '0f8fad5b-d9cb-469f-a165-70867728950e', version: 4_000_000_000 }
  const token = inviteToken(secret, name)

  test('is accepted only with the secret that signed it', () => {
    expect(readInviteToken(secret, token)).toEqual(name)
    expect(readInviteToken(new Uint8Array(32).fill(2), token)).toBeUndefined()
  })

  test('is refused with any flipped bit, and in any other encoding', () => {
    const bytes = Buffer.from(token, 'base64url')
    for (let bit = 0; bit < bytes.length * 8; bit += 1) {
      const turned = Buffer.from(bytes)
      turned[bit >> 3] = (turned[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      expect(readInviteToken(secret, turned.toString('base64url'))).toBeUndefined()
    }
    for (const other of [`${token}=`, `${token}A`, token.slice(1), ` ${token}`, bytes.toString('hex'), '']) {
      expect(readInviteToken(secret, other)).toBeUndefined()
    }
    expect(readInviteToken(secret, `${token.slice(0, 5)}.${token.slice(5)}`)).toBeUndefined()
  })
})

describe('the page of an invite', () => {
  const find = async (token: string) => findInvite(await contextOf(service), token)

  test('shows an open invite until it expires, and an accepted one for ever, unless the contractor is deactivated', async () => {
    const id = await create({ name: 'Ann' })
    const token = await invite(id)
    expect(await find(token)).toMatchObject({ company: undefined })
    await service.ask('PATCH', '/me', { session: employer, body: { orgName: 'Acme' } })
    expect(await find(token)).toEqual({
      company: 'Acme',
      invited: 'Ann',
      ways: { email: true, wallet: true, namesAccount: false },
      expiresAt: new Date(NOW.getTime() + 14 * 86_400_000),
      accepted: undefined,
    })
    expect(await find('x')).toBeUndefined()
    const mailed = await invite(await create({ name: 'Ada', email: 'ada@b.example' }))
    expect(await find(mailed)).toMatchObject({ invited: 'a…@b.example' })
    service.clock.now = new Date(NOW.getTime() + 14 * 86_400_000)
    expect(await find(token)).toBeUndefined()
    service.clock.now = NOW
    await accept((await newcomer()).session, token)
    service.clock.now = new Date(NOW.getTime() + 400 * 86_400_000)
    expect(await find(token)).toMatchObject({ company: 'Acme', accepted: { status: 'onboarding', hasAccount: true } })
    service.clock.now = NOW
    await service.ask('PATCH', `/contractors/${id}`, { session: employer, body: { status: 'inactive' } })
    expect(await find(token)).toBeUndefined()
  })

  test('escapes user input', () => {
    const title = '<script>alert("x")</script> & Co invites you'
    const html = renderToStaticMarkup(InviteCard({ title, children: null }))
    expect(html).toContain('&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt; &amp; Co invites you')
    expect(html).not.toContain('<script')
  })
})

test('is the link’s target if no frontend is configured', async () => {
  const other = await openTestService(atNoon())
  const session = await other.wallet(accountOf(6_998))
  const id = idOf(await other.ask('POST', '/contractors', { session, body: { name: 'Ann' } }))
  const { body } = await other.ask('POST', `/contractors/${id}/invite`, { session })
  expect(body.inviteUrl).toMatch(/^https:\/\/pay\.example\/invite\/[\w-]{70}$/)
  await other.close()
})
