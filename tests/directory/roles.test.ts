import { randomUUID } from 'node:crypto'
import { eq } from 'drizzle-orm'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { auditLog } from '#drizzle/schema/audit.ts'
import { identities, organisations } from '#drizzle/schema/directory.ts'
import { mintSession } from '#lib/auth/session.ts'
import { createBatch } from '#lib/directory/batches.ts'
import { changeContractor } from '#lib/directory/contractors/changes.ts'
import { createContractor } from '#lib/directory/contractors/creation.ts'
import { importContractors } from '#lib/directory/contractors/import.ts'
import { admitSession, admitUser, requireEmployer } from '#lib/directory/user.ts'
import { captureLog } from '../support/console.ts'
import {
  type Answer,
  accountOf,
  fieldsOf,
  ISSUER,
  idOf,
  keyOf,
  type Method,
  NOW,
  type Office,
  openOffice,
} from './office.ts'

let office: Office
let users = 4_000

beforeAll(async () => {
  office = await openOffice()
})
afterAll(() => office.close())
beforeEach(() => {
  captureLog()
  office.clock.now = NOW
})
afterEach(() => {
  vi.restoreAllMocks()
})

/** Somebody who has never been here. */
async function newcomer() {
  users += 1
  const address = accountOf(users)
  return { address, session: await office.wallet(address) }
}

const me = async (session: string) => (await office.call(session, 'GET', '/me')).body
const create = async (session: string, body: object) => idOf(await office.call(session, 'POST', '/contractors', body))
const refused = ({ status, body }: Answer) => [status, body.error]

/** The token of a fresh invite. */
async function invite(session: string, id: string): Promise<string> {
  const { body } = await office.call(session, 'POST', `/contractors/${id}/invite`)
  return String(body.inviteUrl).split('/').at(-1) ?? ''
}

const accept = (session: string, token: string) => office.call(session, 'POST', `/invites/${token}/accept`)

/** Somebody linked to a new contractor record of `employer`, with that record's id. */
async function hired(employer: string): Promise<{ session: string; address: string; id: string }> {
  const person = await newcomer()
  const id = await create(employer, { name: 'Ann', address: person.address })
  await accept(person.session, await invite(employer, id))
  return { ...person, id }
}

describe('who comes for the first time', () => {
  test('is an employer, by wallet', async () => {
    const { address, session } = await newcomer()
    expect(await me(session)).toEqual({
      sub: address,
      kind: 'ledger',
      roles: ['employer'],
      needsOnboarding: false,
      employer: { orgId: expect.any(String), orgName: `${address.slice(0, 6)}…${address.slice(-4)}` },
    })
  })

  test('is an employer, by email', async () => {
    expect(await me(await office.user('alice', 'alice@b.example'))).toEqual({
      sub: 'alice',
      kind: 'idp',
      roles: ['employer'],
      needsOnboarding: false,
      employer: { orgId: expect.any(String), orgName: 'alice' },
    })
    const [row] = await office.db.select().from(identities).where(eq(identities.sub, 'alice'))
    expect(row).toMatchObject({ kind: 'idp', issuer: ISSUER, email: 'alice@b.example' })
  })

  test('founds one organisation, however many requests come at once', async () => {
    const { session, address } = await newcomer()
    const answers = await Promise.all(Array.from({ length: 20 }, () => me(session)))
    expect(new Set(answers.map(({ employer }) => JSON.stringify(employer))).size).toBe(1)
    const founded = await office.db.select().from(auditLog).where(eq(auditLog.actorSub, address))
    expect(founded.map(({ action }) => action)).toEqual(['organisation.founded'])
  })

  test('an idp sub in the form of a G-address is somebody else than the account', async () => {
    const { address, session } = await newcomer()
    const [wallet, user] = [await me(session), await me(await office.user(address))]
    expect([wallet.kind, user.kind]).toEqual(['ledger', 'idp'])
    expect(wallet.employer).not.toEqual(user.employer)
  })

  test('the same sub of another provider is refused', async () => {
    await me(await office.user('bob'))
    const identity = { kind: 'idp', sub: 'bob', issuer: 'https://other.example' } as const
    const session = await mintSession(office.service.settings.sessions, identity, NOW)
    expect(refused(await office.call(session, 'GET', '/me'))).toEqual([
      403,
      'this user belongs to another identity provider',
    ])
  })

  test('a verified email that changes is kept anew', async () => {
    await me(await office.user('carol', 'old@b.example'))
    await me(await office.user('carol', 'New@B.example'))
    await me(await office.user('carol'))
    const [row] = await office.db.select().from(identities).where(eq(identities.sub, 'carol'))
    expect(row?.email).toBe('new@b.example')
  })
})

describe('PATCH /me', () => {
  const rename = (session: string, body: unknown) => office.call(session, 'PATCH', '/me', body)

  test('names the organisation', async () => {
    const { session } = await newcomer()
    const before = await me(session)
    const { body } = await rename(session, { orgName: 'Ærø & Søn <b>' })
    expect(body).toEqual({ ...before, employer: { ...Object(before.employer), orgName: 'Ærø & Søn <b>' } })
    expect(await me(session)).toEqual(body)
  })

  test.each([
    [{}, 'orgName required'],
    [{ orgName: null }, 'orgName must be a string'],
    [{ orgName: ' ' }, 'orgName required'],
    [{ orgName: 'x'.repeat(201) }, 'orgName must have at most 200 characters'],
    [{ orgName: 'a\tb' }, 'orgName must not hold control characters'],
    [{ orgName: 'SAKICEVQLYWGSOJS4WW7HZJWAHZVEEBS527LHK5V4MLJALYKICQCJXMW' }, 'orgName must not hold a secret seed'],
  ])('%j is refused: %s', async (body, error) => {
    const { session } = await newcomer()
    expect(refused(await rename(session, body))).toEqual([400, error])
  })

  test('founds an organisation for a contractor who has none', async () => {
    const employer = await newcomer()
    const { session } = await hired(employer.session)
    expect((await me(session)).roles).toEqual(['contractor'])
    const { body } = await rename(session, { orgName: 'Mine' })
    expect(body).toMatchObject({ roles: ['employer', 'contractor'], employer: { orgName: 'Mine' } })
  })
})

describe('a pending invite', () => {
  test('by address: no organisation, until the first write of an employer', async () => {
    const [employer, person] = [await newcomer(), await newcomer()]
    await office.call(employer.session, 'PATCH', '/me', { orgName: 'Acme' })
    await create(employer.session, { name: 'Ann', address: person.address })
    const found = await me(person.session)
    expect(found).toEqual({
      sub: person.address,
      kind: 'ledger',
      roles: [],
      needsOnboarding: true,
      invite: { company: 'Acme', role: 'contractor', token: expect.stringMatching(/^[\w-]{70}$/) },
    })
    // A body that is refused is no write.
    for (const path of ['/contractors', '/contractors/bulk']) {
      expect((await office.call(person.session, 'POST', path, {})).status).toBe(400)
    }
    expect(refused(await office.call(person.session, 'GET', '/contractors'))).toEqual([403, 'employer role required'])
    await create(person.session, { name: 'My own' })
    expect(await me(person.session)).toMatchObject({
      roles: ['employer'],
      needsOnboarding: false,
      invite: found.invite,
    })
  })

  test('by verified email, in any case; an unverified one counts for nothing', async () => {
    const employer = await newcomer()
    await create(employer.session, { name: 'Dan', email: 'Dan@B.example' })
    expect(await me(await office.user('dan', 'dAN@b.example'))).toMatchObject({
      roles: [],
      invite: { role: 'contractor' },
    })
    expect(await me(await office.user('not dan'))).toMatchObject({ roles: ['employer'] })
  })

  test('to somebody who has an organisation without records needs onboarding, with records not', async () => {
    const [employer, person] = [await newcomer(), await newcomer()]
    await me(person.session)
    await create(employer.session, { name: 'Ann', address: person.address })
    expect(await me(person.session)).toMatchObject({ roles: ['employer'], needsOnboarding: true })
    const own = await create(person.session, { name: 'My own' })
    expect(await me(person.session)).toMatchObject({ needsOnboarding: false, invite: { role: 'contractor' } })
    await office.call(person.session, 'DELETE', `/contractors/${own}`)
    expect(await me(person.session)).toMatchObject({ needsOnboarding: true })
  })

  test('is the newest of several, and none of the own organisation, of a removed or inactive record, or of an old one', async () => {
    const person = await newcomer()
    await create(person.session, { name: 'Myself', address: person.address })
    expect((await me(person.session)).invite).toBeUndefined()
    const [first, second] = [await newcomer(), await newcomer()]
    await office.call(first.session, 'PATCH', '/me', { orgName: 'First' })
    await office.call(second.session, 'PATCH', '/me', { orgName: 'Second' })
    await create(first.session, { name: 'Ann', address: person.address })
    const id = await create(second.session, { name: 'Ann', address: person.address })
    const company = async () => Object((await me(person.session)).invite).company
    expect(await company()).toBe('Second')
    await office.call(second.session, 'PATCH', `/contractors/${id}`, { status: 'inactive' })
    expect(await company()).toBe('First')
    await office.call(second.session, 'PATCH', `/contractors/${id}`, { status: 'invited' })
    expect(await company()).toBe('Second')
    await office.call(second.session, 'DELETE', `/contractors/${id}`)
    expect(await company()).toBe('First')
    office.clock.now = new Date(NOW.getTime() + 14 * 86_400_000)
    person.session = await office.wallet(person.address)
    expect(await company()).toBeUndefined()
  })

  test('that is gone, as a record that is gone, leaves an employer behind from the next sign-in on', async () => {
    const [employer, person] = [await newcomer(), await newcomer()]
    const context = { ...office.service, now: () => office.clock.now }
    const signIn = async () => {
      await admitSession(context, { session: person.session })
      return (await me(person.session)).roles
    }
    const invited = await create(employer.session, { name: 'Ann', address: person.address })
    expect([await signIn(), await signIn()]).toEqual([[], []])
    await accept(person.session, await invite(employer.session, invited))
    expect(await signIn()).toEqual(['contractor'])
    await office.call(employer.session, 'DELETE', `/contractors/${invited}`)
    expect((await me(person.session)).roles).toEqual([])
    expect(await signIn()).toEqual(['employer'])
  })

  test('outlives the record becoming ready: no organisation, and the invite stays', async () => {
    const [employer, person] = [await newcomer(), await newcomer()]
    office.rpc.register(person.address, keyOf(users))
    const id = await create(employer.session, { name: 'Ann', address: person.address })
    expect((await office.call(employer.session, 'GET', `/contractors/${id}`)).body.status).toBe('ready')
    const context = { ...office.service, now: () => office.clock.now }
    await admitSession(context, { session: person.session })
    const found = await me(person.session)
    expect(found).toMatchObject({ roles: [], needsOnboarding: true, invite: { role: 'contractor' } })
    const { token } = Object(found.invite) as { token: string }
    expect((await accept(person.session, token)).body).toMatchObject({ id, status: 'ready' })
    expect(await me(person.session)).toMatchObject({ roles: ['contractor'], needsOnboarding: false })
  })

  test('its token is accepted', async () => {
    const [employer, person] = [await newcomer(), await newcomer()]
    await create(employer.session, { name: 'Ann', address: person.address })
    const { token } = Object((await me(person.session)).invite) as { token: string }
    expect((await accept(person.session, token)).status).toBe(200)
  })
})

describe('a linked contractor', () => {
  test('has its role, its record, and no organisation if its own was empty', async () => {
    const employer = await newcomer()
    const { session, id, address } = await hired(employer.session)
    expect(await me(session)).toEqual({
      sub: address,
      kind: 'ledger',
      roles: ['contractor'],
      needsOnboarding: true,
      contractor: { id, name: 'Ann', status: 'onboarding' },
    })
    const dissolved = await office.db.select().from(auditLog).where(eq(auditLog.actorSub, address))
    expect(dissolved.map(({ action }) => action)).toEqual(['contractor.linked'])
  })

  test('an empty organisation is dissolved, one with records stays', async () => {
    const employer = await newcomer()
    const [empty, busy] = [await newcomer(), await newcomer()]
    const { employer: organisation } = await me(empty.session)
    await create(busy.session, { name: 'Somebody' })
    for (const { session } of [empty, busy]) {
      await accept(session, await invite(employer.session, await create(employer.session, { name: 'Ann' })))
    }
    expect((await me(empty.session)).roles).toEqual(['contractor'])
    expect((await me(busy.session)).roles).toEqual(['employer', 'contractor'])
    const left = await office.db
      .select()
      .from(organisations)
      .where(eq(organisations.id, Object(organisation).orgId))
    expect(left).toEqual([])
  })

  test('what its own organisation was asked for at that very moment is a conflict', async () => {
    const [employer, person] = [await newcomer(), await newcomer()]
    const user = await admitUser(office.db, { kind: 'ledger', sub: person.address }, NOW)
    const late = requireEmployer(user)
    await accept(person.session, await invite(employer.session, await create(employer.session, { name: 'Ann' })))
    const conflict = { code: 'organisation-dissolved', message: 'your organisation is not there any more' }
    const { registry } = office.service
    await expect(createBatch(office.db, late, { name: 'March' }, NOW)).rejects.toMatchObject(conflict)
    await expect(createContractor(office.db, registry, late, { name: 'Bob' }, NOW)).rejects.toMatchObject(conflict)
    await expect(importContractors(office.db, registry, late, [{ name: 'Bob' }], NOW)).rejects.toMatchObject(conflict)
  })

  test('sees its own record and changes its address, and does nothing else', async () => {
    const employer = await newcomer()
    const { session, id, address } = await hired(employer.session)
    const other = await create(employer.session, { name: 'Bob' })
    expect((await office.call(session, 'GET', `/contractors/${id}`)).body.name).toBe('Ann')
    await office.call(employer.session, 'PATCH', `/contractors/${id}`, { address: accountOf(99_000) })
    const patched = await office.call(session, 'PATCH', `/contractors/${id}`, { address })
    expect([patched.status, patched.body.address]).toEqual([200, address])
    const forbidden: [Method, string, object?][] = [
      ['PATCH', `/contractors/${id}`, { name: 'Boss' }],
      ['PATCH', `/contractors/${id}`, { status: 'ready' }],
      ['PATCH', `/contractors/${id}`, { address, rate: { amount: '9', currency: 'USDC' } }],
      ['DELETE', `/contractors/${id}`],
      ['POST', `/contractors/${id}/invite`],
      ['GET', `/contractors/${other}`],
      ['PATCH', `/contractors/${other}`, { address }],
      ['GET', `/contractors/${randomUUID()}`],
      ['GET', '/contractors'],
      ['POST', '/contractors', { name: 'x' }],
      ['POST', '/contractors/bulk', { rows: [{ name: 'x' }] }],
    ]
    for (const [method, path, body] of forbidden) {
      expect(refused(await office.call(session, method, path, body))).toEqual([403, 'employer role required'])
    }
    expect((await office.call(session, 'GET', `/contractors/${id}`)).body).toMatchObject({ name: 'Ann', address })
    expect(fieldsOf(await office.call(employer.session, 'GET', '/contractors'), 'contractors', 'name')).toEqual([
      'Bob',
      'Ann',
    ])
  })

  test('learns of no address that its employer pays: it may set what it has proven, keep what is there, or clear it', async () => {
    const employer = await newcomer()
    const { session, id, address } = await hired(employer.session)
    const [paid, unpaid] = [accountOf(99_010), accountOf(99_011)]
    await create(employer.session, { name: 'Bob', address: paid })
    const move = (to: string | null) => office.call(session, 'PATCH', `/contractors/${id}`, { address: to })
    const answers = [await move(paid), await move(unpaid)]
    expect(answers.map(refused)).toEqual(Array(2).fill([403, 'sign in with that account first']))
    expect([(await move(address)).status, (await move(null)).status, (await move(address)).status]).toEqual([
      200, 200, 200,
    ])
  })

  test('who came by email proves an account by joining it', async () => {
    const employer = await newcomer()
    const id = await create(employer.session, { name: 'Gus', email: 'gus@b.example' })
    const session = await office.user('gus', 'gus@b.example')
    await accept(session, await invite(employer.session, id))
    const wallet = await newcomer()
    const move = () => office.call(session, 'PATCH', `/contractors/${id}`, { address: wallet.address })
    expect(refused(await move())).toEqual([403, 'sign in with that account first'])
    expect((await office.call(session, 'POST', '/me/identities', { session: wallet.session })).status).toBe(200)
    expect((await move()).body).toMatchObject({ id, address: wallet.address })
  })

  test('who is linked no more changes nothing, though the request began before', async () => {
    const employer = await newcomer()
    const { session, id, address } = await hired(employer.session)
    const user = await admitUser(office.db, { kind: 'ledger', sub: address }, NOW)
    await office.call(employer.session, 'DELETE', `/contractors/${id}`)
    const changing = changeContractor(office.db, office.service.registry, user, id, { address }, NOW)
    await expect(changing).rejects.toMatchObject({ code: 'contractor-not-found' })
    expect(refused(await office.call(session, 'GET', `/contractors/${id}`))).toEqual([403, 'employer role required'])
  })

  test('the role comes before the body: what nobody may do is not judged', async () => {
    const employer = await newcomer()
    const { session } = await hired(employer.session)
    const answer = await office.call(session, 'PATCH', `/contractors/${randomUUID()}`, '{"name":')
    expect(refused(answer)).toEqual([403, 'employer role required'])
    expect((await office.call(session, 'POST', '/contractors', '{"name":')).status).toBe(403)
  })

  test('of several records the newest is shown, and all are its own', async () => {
    const [first, second, person] = [await newcomer(), await newcomer(), await newcomer()]
    const ids: string[] = []
    for (const { session } of [first, second]) {
      const id = await create(session, { name: `R${ids.length}` })
      ids.push(id)
      await accept(person.session, await invite(session, id))
    }
    expect((await me(person.session)).contractor).toMatchObject({ id: ids[1], name: 'R1' })
    for (const id of ids) expect((await office.call(person.session, 'GET', `/contractors/${id}`)).status).toBe(200)
    await office.call(second.session, 'DELETE', `/contractors/${ids[1]}`)
    expect((await me(person.session)).contractor).toMatchObject({ id: ids[0] })
  })
})

describe('organisations are apart', () => {
  test('another employer finds nothing, whatever it asks for', async () => {
    const [owner, stranger] = [await newcomer(), await newcomer()]
    const given = { name: 'Ann', email: 'ann@own.example', address: accountOf(99_001) }
    const created = await office.call(owner.session, 'POST', '/contractors', given)
    const id = idOf(created)
    const asked: [Method, string, object?][] = [
      ['GET', `/contractors/${id}`],
      ['PATCH', `/contractors/${id}`, { name: 'Mine' }],
      ['PATCH', `/contractors/${id}`, {}],
      ['DELETE', `/contractors/${id}`],
      ['POST', `/contractors/${id}/invite`],
    ]
    for (const [method, path, body] of asked) {
      expect(refused(await office.call(stranger.session, method, path, body))).toEqual([404, 'contractor not found'])
    }
    expect((await office.call(stranger.session, 'GET', '/contractors')).body).toEqual({ contractors: [] })
    // Nor does it learn that somebody else has the same.
    expect((await office.call(stranger.session, 'POST', '/contractors', given)).status).toBe(200)
    const bulk = await office.call((await newcomer()).session, 'POST', '/contractors/bulk', { rows: [given] })
    expect(bulk.body.errors).toEqual([])
    expect((await office.call(owner.session, 'GET', `/contractors/${id}`)).body).toEqual(created.body)
  })

  test('a cursor of one list opens nothing of another', async () => {
    const [owner, stranger] = [await newcomer(), await newcomer()]
    for (const name of ['a', 'b']) await create(owner.session, { name })
    const link = (await office.call(owner.session, 'GET', '/contractors?limit=1')).headers.get('link') ?? ''
    const query = /<([^>]*)>/.exec(link)?.[1] ?? ''
    expect((await office.call(stranger.session, 'GET', `/contractors${query}`)).body).toEqual({ contractors: [] })
  })

  test.each<[Method, string]>([
    ['GET', '/contractors'],
    ['POST', '/contractors'],
    ['POST', '/contractors/bulk'],
    ['GET', `/contractors/${randomUUID()}`],
    ['PATCH', `/contractors/${randomUUID()}`],
    ['DELETE', `/contractors/${randomUUID()}`],
    ['POST', `/contractors/${randomUUID()}/invite`],
    ['POST', '/invites/x/accept'],
    ['GET', '/me'],
    ['PATCH', '/me'],
    ['POST', '/me/identities'],
  ])('%s %s needs a session', async (method, path) => {
    const answer = await office.call(undefined, method, path)
    expect(refused(answer)).toEqual([401, 'missing bearer token'])
    expect(answer.headers.get('www-authenticate')).toBe('Bearer')
    expect((await office.call('x.y.z', method, path)).status).toBe(401)
  })
})

describe('POST /me/identities', () => {
  const join = (session: string, other: unknown) => office.call(session, 'POST', '/me/identities', { session: other })

  test('brings a wallet into the organisation of an email user; it may be repeated', async () => {
    const user = await office.user('erin')
    const wallet = await newcomer()
    const { employer } = await me(user)
    const before = await me(wallet.session)
    for (let time = 0; time < 2; time += 1) {
      const answer = await join(user, wallet.session)
      expect([answer.status, answer.body]).toEqual([200, await me(user)])
    }
    expect((await me(wallet.session)).employer).toEqual(employer)
    const left = await office.db
      .select()
      .from(organisations)
      .where(eq(organisations.id, Object(before.employer).orgId))
    expect(left).toEqual([])
    const id = await create(wallet.session, { name: 'Ann' })
    expect((await office.call(user, 'GET', `/contractors/${id}`)).status).toBe(200)
  })

  test('not if the other has records of its own', async () => {
    const [caller, other] = [await newcomer(), await newcomer()]
    await create(other.session, { name: 'Ann' })
    const before = await me(other.session)
    expect(refused(await join(caller.session, other.session))).toEqual([
      409,
      "the other session's organisation has records of its own",
    ])
    expect(await me(other.session)).toEqual(before)
  })

  test('of two identities that join each other at once, one organisation is left to both', async () => {
    const [one, other] = [await newcomer(), await newcomer()]
    await Promise.all([me(one.session), me(other.session)])
    const answers = await Promise.all([join(one.session, other.session), join(other.session, one.session)])
    expect(answers.every(({ status }) => status === 200 || status === 409)).toBe(true)
    for (const { session } of [one, other]) {
      expect(await me(session)).toMatchObject({ roles: ['employer'], employer: { orgId: expect.any(String) } })
    }
  })

  test('oneself changes nothing', async () => {
    const { session } = await newcomer()
    const before = await me(session)
    expect((await join(session, session)).body).toEqual(before)
  })

  test.each([
    [undefined, 'session required'],
    ['', 'session required'],
    [7, 'session must be a valid session'],
    ['a.b.c', 'session must be a valid session'],
  ])('%j is no session', async (other, error) => {
    const { session } = await newcomer()
    expect(refused(await join(session, other))).toEqual([400, error])
  })

  test('an expired session is none', async () => {
    const other = await newcomer()
    office.clock.now = new Date(NOW.getTime() + 3_600_000)
    const { session } = await newcomer()
    expect(refused(await join(session, other.session))).toEqual([400, 'session must be a valid session'])
  })

  test('founds the organisation of a contractor who has none', async () => {
    const employer = await newcomer()
    const { session } = await hired(employer.session)
    const other = await newcomer()
    expect((await join(session, other.session)).body).toMatchObject({ roles: ['employer', 'contractor'] })
    expect((await me(other.session)).employer).toEqual((await me(session)).employer)
  })
})
