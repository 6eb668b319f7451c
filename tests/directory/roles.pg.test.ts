import { eq } from 'drizzle-orm'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { auditLog } from '#drizzle/schema/audit.ts'
import { identities, organisations } from '#drizzle/schema/directory.ts'
import { transfers } from '#drizzle/schema/transfers.ts'
import { mintSession } from '#lib/auth/session.ts'
import { insertRows, transferRow } from '#lib/cli/seed/rows.ts'
import { createBatch } from '#lib/directory/batches/batches.ts'
import { changeContractor } from '#lib/directory/contractors/changes.ts'
import { createContractor } from '#lib/directory/contractors/creation.ts'
import { importContractors } from '#lib/directory/contractors/import.ts'
import { admitSession, admitUser, becomeEmployer, requireEmployer } from '#lib/directory/users.ts'
import type { Answer, Method } from '../support/api-client.ts'
import { captureLog } from '../support/console.ts'
import { accountOf, atNoon, contextOf, fieldsOf, ISSUER, idOf, keyOf, NOW } from '../support/directory.ts'
import { employerWith } from '../support/fixtures.ts'
import { openTestService, type TestService } from '../support/test-service.ts'
import { type EmailProvider, startEmailProvider } from './email-provider.ts'

let service: TestService<'fake'>
let provider: EmailProvider
let users = 4_000

beforeAll(async () => {
  provider = await startEmailProvider()
  service = await openTestService(atNoon(provider.variables))
})
afterAll(async () => {
  await service.close()
  await provider.close()
})
beforeEach(() => {
  captureLog()
  service.clock.now = NOW
})
afterEach(() => {
  vi.restoreAllMocks()
})

/** A user who has never signed in. */
async function newcomer() {
  users += 1
  const address = accountOf(users)
  return { address, session: await service.wallet(address) }
}

const me = async (session: string) => (await service.ask('GET', '/me', { session })).body
const create = async (session: string, body: object) =>
  idOf(await service.ask('POST', '/contractors', { session, body }))
const refused = ({ status, body }: Answer) => [status, body.error]

/** The token of a new invite. */
async function invite(session: string, id: string): Promise<string> {
  const { body } = await service.ask('POST', `/contractors/${id}/invite`, { session })
  return String(body.inviteUrl).split('/').at(-1) ?? ''
}

const accept = (session: string, token: string) => service.ask('POST', `/invites/${token}/accept`, { session })

/** A user who is linked to a new contractor record of `employer`, and that record's id. */
async function hired(employer: string): Promise<{ session: string; address: string; id: string }> {
  const person = await newcomer()
  const id = await create(employer, { name: 'Ann', address: person.address })
  await accept(person.session, await invite(employer, id))
  return { ...person, id }
}

describe('a new user', () => {
  test('becomes an employer when signing in with a wallet', async () => {
    const { address, session } = await newcomer()
    expect(await me(session)).toEqual({
      sub: address,
      kind: 'ledger',
      identities: [{ kind: 'ledger', sub: address }],
      roles: ['employer'],
      needsOnboarding: false,
      employer: { orgId: expect.any(String), orgName: `${address.slice(0, 6)}…${address.slice(-4)}` },
    })
  })

  test('becomes an employer when signing in with an email', async () => {
    expect(await me(await service.user('alice', 'alice@b.example'))).toEqual({
      sub: 'alice',
      kind: 'idp',
      identities: [{ kind: 'idp', sub: 'alice', email: 'alice@b.example' }],
      roles: ['employer'],
      needsOnboarding: false,
      employer: { orgId: expect.any(String), orgName: 'alice' },
    })
    const [row] = await service.db.select().from(identities).where(eq(identities.sub, 'alice'))
    expect(row).toMatchObject({ kind: 'idp', issuer: ISSUER, email: 'alice@b.example' })
  })

  test.each([
    ['a contractor', 'POST', '/contractors', { name: 'Ann' }, 'contractor.created'],
    ['a batch', 'POST', '/batches', { name: 'March' }, 'batch.created'],
    ['a name', 'PATCH', '/me', { orgName: 'Acme' }, undefined],
  ] as const)(
    'founds its organisation with %s, once, under the id that it had before',
    async (_, method, path, body, action) => {
      const { session, address } = await newcomer()
      const answers = await Promise.all(Array.from({ length: 20 }, () => me(session)))
      const [{ orgId } = { orgId: '' }] = [...new Set(answers.map(({ employer }) => Object(employer)))]
      const isThis = eq(organisations.id, orgId)
      expect(await service.db.$count(organisations, isThis)).toBe(0)
      await Promise.all([1, 2, 3].map(() => service.ask(method, path, { session, body })))
      expect((await me(session)).employer).toMatchObject({ orgId })
      expect(await service.db.$count(organisations, isThis)).toBe(1)
      const done = await service.db.select().from(auditLog).where(eq(auditLog.actorSub, address))
      const actions = done.map((entry) => entry.action)
      expect(actions.toSorted()).toEqual(
        [...(action ? [action, action, action] : []), 'organisation.founded'].toSorted(),
      )
    },
  )

  test('is distinct from the account if the sub is a G-address', async () => {
    const { address, session } = await newcomer()
    const [wallet, user] = [await me(session), await me(await service.user(address))]
    expect([wallet.kind, user.kind]).toEqual(['ledger', 'idp'])
    expect(wallet.employer).not.toEqual(user.employer)
  })

  test('is refused with the same sub at another provider', async () => {
    await me(await service.user('bob'))
    const identity = { kind: 'idp', sub: 'bob', issuer: 'https://other.example' } as const
    const session = await mintSession(service.running.settings.sessions, identity, NOW)
    expect(refused(await service.ask('GET', '/me', { session }))).toEqual([
      403,
      'this user belongs to another identity provider',
    ])
  })

  test('has its new verified email stored', async () => {
    await me(await service.user('carol', 'old@b.example'))
    await me(await service.user('carol', 'New@B.example'))
    await me(await service.user('carol'))
    const [row] = await service.db.select().from(identities).where(eq(identities.sub, 'carol'))
    // The last session says nothing about an email.
    expect(row?.email).toBe('new@b.example')
  })
})

describe('PATCH /me', () => {
  const rename = (session: string, body: unknown) => service.ask('PATCH', '/me', { session, body })

  test('sets the name of the organisation', async () => {
    const { session } = await newcomer()
    const before = await me(session)
    const { body } = await rename(session, { orgName: 'Ærø & Søn <b>' })
    expect(body).toEqual({ ...before, employer: { ...Object(before.employer), orgName: 'Ærø & Søn <b>' } })
    expect(await me(session)).toEqual(body)
  })

  test('is refused an invalid name', async () => {
    const { session } = await newcomer()
    expect(refused(await rename(session, {}))).toEqual([400, 'orgName required'])
    expect(refused(await rename(session, { orgName: null }))).toEqual([400, 'orgName must be a string'])
  })

  test('creates an organisation for a contractor who has none', async () => {
    const employer = await newcomer()
    const { session } = await hired(employer.session)
    expect((await me(session)).roles).toEqual(['contractor'])
    const { body } = await rename(session, { orgName: 'Mine' })
    expect(body).toMatchObject({ roles: ['employer', 'contractor'], employer: { orgName: 'Mine' } })
  })
})

describe('a pending invite', () => {
  test('by address prevents an organisation until the first write of an employer', async () => {
    const [employer, person] = [await newcomer(), await newcomer()]
    await service.ask('PATCH', '/me', { session: employer.session, body: { orgName: 'Acme' } })
    await create(employer.session, { name: 'Ann', address: person.address })
    const profile = await me(person.session)
    expect(profile).toEqual({
      sub: person.address,
      kind: 'ledger',
      identities: [{ kind: 'ledger', sub: person.address }],
      roles: [],
      needsOnboarding: true,
      invite: { company: 'Acme', role: 'contractor', token: expect.stringMatching(/^[\w-]{70}$/) },
    })
    // A request whose body is refused doesn't count as a write.
    for (const path of ['/contractors', '/contractors/bulk']) {
      expect((await service.ask('POST', path, { session: person.session, body: {} })).status).toBe(400)
    }
    expect(refused(await service.ask('GET', '/contractors', { session: person.session }))).toEqual([
      403,
      'employer role required',
    ])
    await create(person.session, { name: 'My own' })
    expect(await me(person.session)).toMatchObject({
      roles: ['employer'],
      needsOnboarding: false,
      invite: profile.invite,
    })
  })

  test('is found by a verified email in any case, and not by a user without an email', async () => {
    const employer = await newcomer()
    await create(employer.session, { name: 'Dan', email: 'Dan@B.example' })
    expect(await me(await service.user('dan', 'dAN@b.example'))).toMatchObject({
      roles: [],
      invite: { role: 'contractor' },
    })
    expect(await me(await service.user('not dan'))).toMatchObject({ roles: ['employer'] })
  })

  test('is hidden from a user whose email is not verified, even if it was before', async () => {
    const employer = await newcomer()
    await create(employer.session, { name: 'Eve', email: 'eve@b.example' })
    const email = 'eve@b.example'
    const signIn = (sub: string, verified: boolean) => provider.signIn(service, { sub, email, verified })
    const stranger = await me(await signIn('a stranger', false))
    expect([stranger.roles, stranger.needsOnboarding, stranger.invite]).toEqual([['employer'], false, undefined])
    const rows = service.db.select({ email: identities.email }).from(identities)
    expect(await rows.where(eq(identities.sub, 'a stranger'))).toEqual([{ email: null }])
    expect(await me(await signIn('eve', true))).toMatchObject({ roles: [], invite: { role: 'contractor' } })
    expect((await me(await signIn('eve', false))).invite).toBeUndefined()
  })

  test('requires onboarding from a user with an empty organisation, but not from one with records', async () => {
    const [employer, person] = [await newcomer(), await newcomer()]
    const before = await me(person.session)
    service.clock.now = new Date(NOW.getTime() + 1_000)
    await create(employer.session, { name: 'Ann', address: person.address })
    // It came later, and takes no role away.
    expect((await me(person.session)).employer).toEqual(before.employer)
    expect(await me(person.session)).toMatchObject({ roles: ['employer'], needsOnboarding: true })
    const own = await create(person.session, { name: 'My own' })
    expect(await me(person.session)).toMatchObject({ needsOnboarding: false, invite: { role: 'contractor' } })
    await service.ask('DELETE', `/contractors/${own}`, { session: person.session })
    expect(await me(person.session)).toMatchObject({ needsOnboarding: true })
  })

  test('is the newest of several, never from the user’s organisation, for a removed or inactive record, or expired', async () => {
    const person = await newcomer()
    await create(person.session, { name: 'Myself', address: person.address })
    expect((await me(person.session)).invite).toBeUndefined()
    const [first, second] = [await newcomer(), await newcomer()]
    await service.ask('PATCH', '/me', { session: first.session, body: { orgName: 'First' } })
    await service.ask('PATCH', '/me', { session: second.session, body: { orgName: 'Second' } })
    await create(first.session, { name: 'Ann', address: person.address })
    const id = await create(second.session, { name: 'Ann', address: person.address })
    const company = async () => Object((await me(person.session)).invite).company
    expect(await company()).toBe('Second')
    await service.ask('PATCH', `/contractors/${id}`, { session: second.session, body: { status: 'inactive' } })
    expect(await company()).toBe('First')
    await service.ask('PATCH', `/contractors/${id}`, { session: second.session, body: { status: 'invited' } })
    expect(await company()).toBe('Second')
    await service.ask('DELETE', `/contractors/${id}`, { session: second.session })
    expect(await company()).toBe('First')
    service.clock.now = new Date(NOW.getTime() + 14 * 86_400_000)
    person.session = await service.wallet(person.address)
    expect(await company()).toBeUndefined()
  })

  test('no longer keeps the user from being an employer once its record is removed', async () => {
    const [employer, person] = [await newcomer(), await newcomer()]
    const context = { ...service.running, now: () => service.clock.now }
    const signIn = async () => {
      await admitSession(context, { session: person.session })
      return (await me(person.session)).roles
    }
    const invited = await create(employer.session, { name: 'Ann', address: person.address })
    expect([await signIn(), await signIn()]).toEqual([[], []])
    await accept(person.session, await invite(employer.session, invited))
    expect(await signIn()).toEqual(['contractor'])
    await service.ask('DELETE', `/contractors/${invited}`, { session: employer.session })
    expect((await me(person.session)).roles).toEqual(['employer'])
  })

  test('keeps the user without an organisation when the record becomes ready', async () => {
    const [employer, person] = [await newcomer(), await newcomer()]
    service.ledger.register(person.address, keyOf(users))
    const id = await create(employer.session, { name: 'Ann', address: person.address })
    expect((await service.ask('GET', `/contractors/${id}`, { session: employer.session })).body.status).toBe('ready')
    const context = { ...service.running, now: () => service.clock.now }
    await admitSession(context, { session: person.session })
    const profile = await me(person.session)
    expect(profile).toMatchObject({ roles: [], needsOnboarding: true, invite: { role: 'contractor' } })
    const { token } = Object(profile.invite) as { token: string }
    expect((await accept(person.session, token)).body).toMatchObject({ id, status: 'ready' })
    expect(await me(person.session)).toMatchObject({ roles: ['contractor'], needsOnboarding: false })
  })

  test('can be accepted by its token', async () => {
    const [employer, person] = [await newcomer(), await newcomer()]
    await create(employer.session, { name: 'Ann', address: person.address })
    const { token } = Object((await me(person.session)).invite) as { token: string }
    expect((await accept(person.session, token)).status).toBe(200)
  })
})

describe('a linked contractor', () => {
  test('has its role, its record, and no organisation if its organisation was empty', async () => {
    const employer = await newcomer()
    const { session, id, address } = await hired(employer.session)
    expect(await me(session)).toEqual({
      sub: address,
      kind: 'ledger',
      identities: [{ kind: 'ledger', sub: address }],
      roles: ['contractor'],
      needsOnboarding: true,
      contractor: { id, name: 'Ann', status: 'onboarding' },
    })
    const dissolved = await service.db.select().from(auditLog).where(eq(auditLog.actorSub, address))
    expect(dissolved.map(({ action }) => action)).toEqual(['contractor.linked'])
  })

  test('loses an empty organisation, and keeps one with records', async () => {
    const employer = await newcomer()
    const [empty, busy] = [await newcomer(), await newcomer()]
    const { employer: organisation } = await me(empty.session)
    await create(busy.session, { name: 'Somebody' })
    for (const { session } of [empty, busy]) {
      await accept(session, await invite(employer.session, await create(employer.session, { name: 'Ann' })))
    }
    expect((await me(empty.session)).roles).toEqual(['contractor'])
    expect((await me(busy.session)).roles).toEqual(['employer', 'contractor'])
    const left = await service.db
      .select()
      .from(organisations)
      .where(eq(organisations.id, Object(organisation).orgId))
    expect(left).toEqual([])
  })

  test.each([
    ['an organisation that is dissolved concurrently', false],
    ['one that it has left and that a removed record keeps', true],
  ])('creates no record in %s', async (_, keeps) => {
    const [employer, person] = [await newcomer(), await newcomer()]
    if (keeps) {
      const removed = await create(person.session, { name: 'Gone' })
      await service.ask('DELETE', `/contractors/${removed}`, { session: person.session })
    }
    const user = await admitUser({ db: service.db, now: NOW }, { kind: 'ledger', sub: person.address })
    const late = { ...(await contextOf(service)), employer: requireEmployer(user) }
    await accept(person.session, await invite(employer.session, await create(employer.session, { name: 'Ann' })))
    const conflict = { code: 'organisation-dissolved', message: 'your organisation no longer exists: sign in again' }
    await expect(createBatch(late, { name: 'March' })).rejects.toMatchObject(conflict)
    await expect(createContractor(late, { name: 'Bob' })).rejects.toMatchObject(conflict)
    await expect(importContractors(late, [{ name: 'Bob' }])).rejects.toMatchObject(conflict)
  })

  test('founds no organisation in a request that began before it accepted', async () => {
    const [employer, person] = [await newcomer(), await newcomer()]
    const context = { db: service.db, now: NOW }
    const user = await admitUser(context, { kind: 'ledger', sub: person.address })
    await accept(person.session, await invite(employer.session, await create(employer.session, { name: 'Ann' })))
    await expect(becomeEmployer(context, user)).rejects.toMatchObject({ code: 'employer-required' })
  })

  test('founds that of its person in a request that began before it was joined', async () => {
    const [person, other] = [await newcomer(), await newcomer()]
    const context = { db: service.db, now: NOW }
    const user = await admitUser(context, { kind: 'ledger', sub: person.address })
    await create(other.session, { name: 'Ann' })
    await service.ask('POST', '/me/identities', { session: other.session, body: { session: person.session } })
    const { organisation } = await becomeEmployer(context, user)
    expect(organisation).toBe(Object((await me(other.session)).employer).orgId)
    expect(organisation).not.toBe(user.organisationId)
  })

  test('sees its record and may change only its address', async () => {
    const employer = await newcomer()
    const { session, id, address } = await hired(employer.session)
    const other = await create(employer.session, { name: 'Bob' })
    expect((await service.ask('GET', `/contractors/${id}`, { session })).body.name).toBe('Ann')
    await service.ask('PATCH', `/contractors/${id}`, {
      session: employer.session,
      body: { address: accountOf(99_000) },
    })
    const patched = await service.ask('PATCH', `/contractors/${id}`, { session, body: { address } })
    expect([patched.status, patched.body.address]).toEqual([200, address])
    const forbidden: [Method, string, object?][] = [
      ['PATCH', `/contractors/${id}`, { name: 'Boss' }],
      ['PATCH', `/contractors/${id}`, { status: 'ready' }],
      ['PATCH', `/contractors/${id}`, { name: '', status: 'gone' }],
      ['PATCH', `/contractors/${id}`, { address, rate: { amount: '9', currency: 'USDC' } }],
      ['DELETE', `/contractors/${id}`],
      ['POST', `/contractors/${id}/invite`],
      ['GET', `/contractors/${other}`],
      ['PATCH', `/contractors/${other}`, { address }],
    ]
    for (const [method, path, body] of forbidden) {
      expect(refused(await service.ask(method, path, { session, body }))).toEqual([403, 'employer role required'])
    }
    expect((await service.ask('GET', `/contractors/${id}`, { session })).body).toMatchObject({ name: 'Ann', address })
    expect(
      fieldsOf(await service.ask('GET', '/contractors', { session: employer.session }), 'contractors', 'name'),
    ).toEqual(['Bob', 'Ann'])
  })

  test('may only set a proven address, keep the current one, or clear it, and so cannot probe the addresses that its employer pays', async () => {
    const employer = await newcomer()
    const { session, id, address } = await hired(employer.session)
    const [paid, unpaid] = [accountOf(99_010), accountOf(99_011)]
    await create(employer.session, { name: 'Bob', address: paid })
    const move = (to: string | null) => service.ask('PATCH', `/contractors/${id}`, { session, body: { address: to } })
    const answers = [await move(paid), await move(unpaid)]
    expect(answers.map(refused)).toEqual(Array(2).fill([403, 'sign in with that account first']))
    expect([(await move(address)).status, (await move(null)).status, (await move(address)).status]).toEqual([
      200, 200, 200,
    ])
  })

  test('proves an account by joining it if signed in by email', async () => {
    const employer = await newcomer()
    const id = await create(employer.session, { name: 'Gus', email: 'gus@b.example' })
    const session = await service.user('gus', 'gus@b.example')
    await accept(session, await invite(employer.session, id))
    const wallet = await newcomer()
    const move = () => service.ask('PATCH', `/contractors/${id}`, { session, body: { address: wallet.address } })
    expect(refused(await move())).toEqual([403, 'sign in with that account first'])
    expect((await service.ask('POST', '/me/identities', { session, body: { session: wallet.session } })).status).toBe(
      200,
    )
    expect((await move()).body).toMatchObject({ id, address: wallet.address })
  })

  test('changes nothing after it was unlinked, even in a request that began before', async () => {
    const employer = await newcomer()
    const { session, id, address } = await hired(employer.session)
    const user = await admitUser({ db: service.db, now: NOW }, { kind: 'ledger', sub: address })
    await service.ask('DELETE', `/contractors/${id}`, { session: employer.session })
    const changing = changeContractor({ ...(await contextOf(service)), user }, { id, changes: { address } })
    await expect(changing).rejects.toMatchObject({ code: 'contractor-not-found' })
    expect(refused(await service.ask('GET', `/contractors/${id}`, { session }))).toEqual([404, 'contractor not found'])
  })

  test('gets the newest of several records, and has access to all', async () => {
    const [first, second, person] = [await newcomer(), await newcomer(), await newcomer()]
    const ids: string[] = []
    for (const { session } of [first, second]) {
      const id = await create(session, { name: `R${ids.length}` })
      ids.push(id)
      await accept(person.session, await invite(session, id))
    }
    expect((await me(person.session)).contractor).toMatchObject({ id: ids[1], name: 'R1' })
    for (const id of ids)
      expect((await service.ask('GET', `/contractors/${id}`, { session: person.session })).status).toBe(200)
    await service.ask('DELETE', `/contractors/${ids[1]}`, { session: second.session })
    expect((await me(person.session)).contractor).toMatchObject({ id: ids[0] })
  })
})

describe('separate organisations', () => {
  test('let another employer have the same contractor, but not list it', async () => {
    const [owner, stranger] = [await newcomer(), await newcomer()]
    const fields = { name: 'Ann', email: 'ann@own.example', address: accountOf(99_001) }
    const created = await service.ask('POST', '/contractors', { session: owner.session, body: fields })
    const id = idOf(created)
    expect((await service.ask('GET', '/contractors', { session: stranger.session })).body).toEqual({ contractors: [] })
    // An employer can't tell that another one has the same contractor.
    expect((await service.ask('POST', '/contractors', { session: stranger.session, body: fields })).status).toBe(200)
    const bulk = await service.ask('POST', '/contractors/bulk', {
      session: (await newcomer()).session,
      body: { rows: [fields] },
    })
    expect(bulk.body.errors).toEqual([])
    expect((await service.ask('GET', `/contractors/${id}`, { session: owner.session })).body).toEqual(created.body)
  })

  test('reject a cursor of one list in another', async () => {
    const [owner, stranger] = [await newcomer(), await newcomer()]
    for (const name of ['a', 'b']) await create(owner.session, { name })
    const link =
      (await service.ask('GET', '/contractors?limit=1', { session: owner.session })).headers.get('link') ?? ''
    const query = /<([^>]*)>/.exec(link)?.[1] ?? ''
    expect((await service.ask('GET', `/contractors${query}`, { session: stranger.session })).body).toEqual({
      contractors: [],
    })
  })
})

describe('POST /me/identities', () => {
  const join = (session: string, other: unknown) =>
    service.ask('POST', '/me/identities', { session, body: { session: other } })
  const separate = (session: string, kind: string) => service.ask('DELETE', `/me/identities/${kind}`, { session })
  /** All that a session sees of its person. */
  const seenBy = async (session: string) => {
    const { sub: _, kind: __, ...profile } = await me(session)
    const { body } = await service.ask('GET', '/payouts', { session })
    return { ...profile, ...body }
  }

  test('makes a contractor by email and its wallet one person, who is no employer', async () => {
    const employer = await employerWith(service, await newcomer())
    const email = 'hana@b.example'
    const unaddressed = { email, emailFolded: email, address: null, pvk: null, status: 'invited' } as const
    const { id } = await employer.engage('Hana', unaddressed)
    const session = await service.user('hana', email)
    await accept(session, await invite(employer.session, id))
    const wallet = await newcomer()
    const { body } = await join(session, wallet.session)
    expect(body).toMatchObject({ roles: ['contractor'], contractor: { id } })
    expect(body.identities).toEqual([
      { kind: 'idp', sub: 'hana', email },
      { kind: 'ledger', sub: wallet.address },
    ])
    service.ledger.register(wallet.address, keyOf(users))
    const own = { session: wallet.session, body: { address: wallet.address } }
    expect((await service.ask('PATCH', `/contractors/${id}`, own)).body).toMatchObject({ status: 'ready' })
    await employer.prepare([{ id }])
    const seen = await seenBy(wallet.session)
    expect(seen).toMatchObject({ roles: ['contractor'], contractor: { id }, payouts: [{ contractorId: id }] })
    expect(await seenBy(session)).toEqual(seen)
    expect((await service.ask('GET', `/contractors/${id}`, { session: wallet.session })).status).toBe(200)
  })

  test('lets either identity accept an invite to the other, for both', async () => {
    const employer = await newcomer()
    const [session, wallet] = [await service.user('ivo', 'ivo@b.example'), await newcomer()]
    await join(wallet.session, session)
    const id = await create(employer.session, { name: 'Ivo', email: 'ivo@b.example' })
    const { invite: open } = await me(wallet.session)
    expect(await seenBy(session)).toEqual(await seenBy(wallet.session))
    expect((await accept(wallet.session, Object(open).token)).body).toMatchObject({ id, address: wallet.address })
    expect(await seenBy(session)).toMatchObject({ roles: ['contractor'], contractor: { id } })
    expect(await seenBy(wallet.session)).toEqual(await seenBy(session))
    // The record stays with the identity that was invited.
    expect((await separate(session, 'ledger')).status).toBe(403)
    expect((await separate(session, 'idp')).status).toBe(200)
    expect(await seenBy(session)).toMatchObject({ contractor: { id } })
    expect(await seenBy(wallet.session)).toMatchObject({ roles: ['employer'] })
  })

  test('knows no invite to an email that the provider no longer verifies, for any identity', async () => {
    const employer = await newcomer()
    const [verified, wallet] = [await service.user('lena', 'lena@b.example'), await newcomer()]
    await join(verified, wallet.session)
    await create(employer.session, { name: 'Lena', email: 'lena@b.example' })
    expect((await me(wallet.session)).invite).toBeDefined()
    await me(await provider.signIn(service, { sub: 'lena', email: 'lena@b.example', verified: false }))
    expect((await me(wallet.session)).invite).toBeUndefined()
    // A session that is older than the provider's word stores its own.
    await me(verified)
    expect((await me(wallet.session)).invite).toBeDefined()
  })

  test('is not undone while a payment of the wallet is not finished', async () => {
    const [user, wallet] = [await service.user('mona'), await newcomer()]
    await join(user, wallet.session)
    const employer = await employerWith(service, wallet)
    const payee = await employer.engage('a payee')
    const batch = await employer.prepare([payee])
    const open = transferRow({ account: wallet.address, payout: batch.payouts[0]?.id ?? null })
    await insertRows(service.db, { transfers: [transferRow({ account: accountOf(99_100) }), open] })
    expect(refused(await separate(user, 'ledger'))).toEqual([409, expect.stringContaining('not finished')])
    await service.db.update(transfers).set({ status: 'expired', settledAt: NOW }).where(eq(transfers.id, open.id))
    expect((await separate(user, 'ledger')).status).toBe(200)
  })

  test('gives both identities one organisation, idempotently', async () => {
    const user = await service.user('erin')
    const wallet = await newcomer()
    const { employer } = await me(user)
    for (let time = 0; time < 2; time += 1) {
      const answer = await join(user, wallet.session)
      expect([answer.status, answer.body]).toEqual([200, await me(user)])
    }
    expect((await me(wallet.session)).employer).toEqual(employer)
    const id = await create(wallet.session, { name: 'Ann' })
    expect((await service.ask('GET', `/contractors/${id}`, { session: user })).status).toBe(200)
    expect(await seenBy(user)).toEqual(await seenBy(wallet.session))
  })

  test('keeps the organisation that has records, or a name, and refuses two with records', async () => {
    const [caller, busy, named] = [await newcomer(), await newcomer(), await newcomer()]
    await create(busy.session, { name: 'Ann' })
    const { employer } = await me(busy.session)
    expect((await join(caller.session, busy.session)).body).toMatchObject({ employer })
    expect(await seenBy(caller.session)).toEqual(await seenBy(busy.session))
    await service.ask('PATCH', '/me', { session: named.session, body: { orgName: 'Acme' } })
    const other = await newcomer()
    expect((await join(other.session, named.session)).body).toMatchObject({ employer: { orgName: 'Acme' } })
    await create(named.session, { name: 'Ann' })
    const before = await me(named.session)
    expect(refused(await join(named.session, busy.session))).toEqual([
      409,
      'both identities have an organisation with records',
    ])
    expect(await me(named.session)).toEqual(before)
  })

  test('leaves one organisation to two identities that join each other concurrently', async () => {
    const [one, other] = [await newcomer(), await newcomer()]
    await Promise.all([me(one.session), me(other.session)])
    const answers = await Promise.all([join(one.session, other.session), join(other.session, one.session)])
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
    expect(await seenBy(one.session)).toEqual(await seenBy(other.session))
  })

  test('changes nothing if a user joins itself', async () => {
    const { session } = await newcomer()
    const before = await me(session)
    expect((await join(session, session)).body).toEqual(before)
  })

  test.each([
    [undefined, 'session required'],
    ['', 'session must be a valid session'],
    [7, 'session must be a valid session'],
    ['a.b.c', 'session must be a valid session'],
  ])('refuses %j as a session', async (other, error) => {
    const { session } = await newcomer()
    expect(refused(await join(session, other))).toEqual([400, error])
  })

  test('is refused for an expired session', async () => {
    const other = await newcomer()
    service.clock.now = new Date(NOW.getTime() + 3_600_000)
    const { session } = await newcomer()
    expect(refused(await join(session, other.session))).toEqual([400, 'session must be a valid session'])
  })

  test('is undone by either identity: the first one keeps the organisation, and each its own records', async () => {
    const employer = await newcomer()
    const wallet = await hired(employer.session)
    const user = await service.user('jana', 'jana@b.example')
    await create(user, { name: 'Ann' })
    const before = [await seenBy(user), await seenBy(wallet.session)]
    for (const session of [user, wallet.session]) {
      await join(user, wallet.session)
      expect(await seenBy(wallet.session)).toMatchObject({ roles: ['employer', 'contractor'] })
      expect(refused(await separate(session, 'idp'))).toEqual([409, expect.stringContaining('has the organisation')])
      expect((await separate(session, 'ledger')).status).toBe(200)
      expect([await seenBy(user), await seenBy(wallet.session)]).toEqual(before)
    }
    expect(refused(await separate(wallet.session, 'idp'))).toEqual([404, expect.stringContaining('no identity')])
    expect((await separate(user, 'carrier-pigeon')).status).toBe(404)
    const entries = await service.db
      .select()
      .from(auditLog)
      .where(eq(auditLog.subjectId, `ledger:${wallet.address}`))
    expect(entries.map(({ action }) => action).toSorted()).toEqual([
      ...['identity.joined', 'identity.joined', 'identity.separated', 'identity.separated'],
    ])
  })
})
