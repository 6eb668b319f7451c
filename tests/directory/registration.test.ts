import { StrKey } from '@stellar/stellar-sdk'
import { eq, inArray } from 'drizzle-orm'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { auditLog } from '#drizzle/schema/audit.ts'
import { contractors } from '#drizzle/schema/directory.ts'
import { enrol } from '#lib/cli/participants.ts'
import { activateContractors, sweepRegistrations } from '#lib/directory/contractors/activation.ts'
import { findRegistrations, lookUpRegistrations } from '#lib/directory/contractors/registration.ts'
import { accountKey } from '#lib/stellar/confidential-token.ts'
import { openNetwork } from '#lib/stellar/network.ts'
import { captureLog } from '../support/console.ts'
import { TOKEN } from '../support/fake-rpc.ts'
import { type Ground, openGround } from '../support/ground.ts'
import { accountOf, idOf, keyOf, NOW, type Office, openOffice } from './office.ts'

let office: Office
let session: string
let employers = 3_000

beforeAll(async () => {
  office = await openOffice()
})
afterAll(() => office.close())
beforeEach(async () => {
  captureLog()
  office.clock.now = NOW
  employers += 1
  session = await office.wallet(accountOf(employers))
  Object.assign(office.rpc, { fault: undefined, result: undefined, requests: [] })
})
afterEach(() => {
  vi.restoreAllMocks()
})

const registry = () => office.service.registry
const create = async (body: object) => idOf(await office.call(session, 'POST', '/contractors', body))
const statusOf = async (id: string) => (await office.call(session, 'GET', `/contractors/${id}`)).body.status
const actor = { kind: 'service', sub: 'test' } as const

describe('what the ledger says of an address', () => {
  const [registered, archived, forgotten, confused, absent] = [1, 2, 3, 4, 5].map(accountOf) as [
    string,
    string,
    string,
    string,
    string,
  ]

  test('registered, archived, incompatible and absent are told apart', async () => {
    office.rpc.register(registered, keyOf(1))
    office.rpc.register(archived, keyOf(2), 0)
    office.rpc.register(forgotten, keyOf(3), office.rpc.latestLedger - 1)
    office.rpc.confuse(confused)
    const found = await lookUpRegistrations(registry(), [absent, confused, forgotten, archived, registered, registered])
    expect(Object.fromEntries(found)).toEqual({
      [registered]: { state: 'registered', pvk: keyOf(1) },
      [archived]: { state: 'archived', pvk: keyOf(2) },
      [forgotten]: { state: 'archived', pvk: keyOf(3) },
      [confused]: { state: 'incompatible' },
      [absent]: { state: 'absent' },
    })
    expect(office.rpc.requests).toEqual([5])
  })

  test('who is archived can be paid, whose entry is another contract’s cannot', async () => {
    const bodies = await Promise.all(
      [archived, confused].map(
        async (address) => (await office.call(session, 'POST', '/contractors', { name: 'A', address })).body,
      ),
    )
    expect(bodies.map(({ status, pvk }) => [status, pvk])).toEqual([
      ['ready', keyOf(2)],
      ['invited', undefined],
    ])
  })

  test('one request for 200 different addresses', async () => {
    const addresses = Array.from({ length: 401 }, (_, n) => accountOf(50_000 + n))
    for (const number of [50_000, 50_199, 50_200, 50_400]) office.rpc.register(accountOf(number), keyOf(number))
    const found = await lookUpRegistrations(registry(), [...addresses, ...addresses])
    expect(office.rpc.requests).toEqual([200, 200, 1])
    expect(found.size).toBe(401)
    expect([...found].filter(([, { state }]) => state === 'registered').map(([address]) => address)).toEqual(
      [50_000, 50_199, 50_200, 50_400].map(accountOf),
    )
  })

  test('no addresses, or no token, ask nothing', async () => {
    expect((await lookUpRegistrations(registry(), [])).size).toBe(0)
    const found = await lookUpRegistrations({ ...registry(), token: undefined }, [registered])
    expect(found.get(registered)).toEqual({ state: 'absent' })
    expect(office.rpc.requests).toEqual([])
  })

  test('a ledger that cannot be asked is no ledger that says no', async () => {
    office.rpc.fault = 'http-503'
    const refusal = { code: 'unavailable', message: 'the ledger cannot be reached' }
    await expect(lookUpRegistrations(registry(), [registered])).rejects.toMatchObject(refusal)
    expect(await findRegistrations(registry(), [registered])).toEqual(new Map())
  })

  test.each<[string, unknown]>([
    ['an entry that was not asked for', { latestLedger: 7, entries: [{ key: 'AAAA', xdr: 'AAAA' }] }],
    [
      'an entry that is no XDR',
      { latestLedger: 7, entries: [{ key: accountKey(TOKEN, registered).toXdr('base64'), xdr: 'AAAA' }] },
    ],
    ['no ledger number', { entries: [] }],
    ['entries that are no list', { latestLedger: 7, entries: 'x' }],
  ])('%s is no answer', async (_what, result) => {
    office.rpc.result = result
    await expect(lookUpRegistrations(registry(), [registered])).rejects.toMatchObject({ code: 'unavailable' })
  })
})

describe('activation', () => {
  test('makes ready who has been registered since, and nobody else', async () => {
    const [late, never, other] = [accountOf(60_001), accountOf(60_002), accountOf(60_003)]
    const ids = await Promise.all([late, never, other].map((address) => create({ name: 'A', address })))
    const [lateId = '', neverId = '', otherId = ''] = ids
    await office.call(session, 'PATCH', `/contractors/${otherId}`, { status: 'inactive' })
    office.rpc.register(late, keyOf(1))
    office.rpc.register(other, keyOf(3))
    const [row] = await office.db.select().from(contractors).where(eq(contractors.id, lateId))
    office.rpc.requests.length = 0
    await activateContractors(office.db, registry(), row?.organisation ?? '', [...ids, 'no id'], { actor, now: NOW })
    expect(office.rpc.requests).toEqual([2])
    expect(await Promise.all([lateId, neverId, otherId].map(statusOf))).toEqual(['ready', 'invited', 'inactive'])
    const [entry] = await office.db.select().from(auditLog).where(eq(auditLog.action, 'contractor.activated'))
    expect(entry).toMatchObject({ subjectId: lateId, actorKind: 'service', actorSub: 'test' })
  })

  test('gives each its own key, and leaves alone whoever has moved on while the ledger was asked', async () => {
    const numbers = [60_021, 60_022, 60_023, 60_024]
    const ids = await Promise.all(numbers.map((number) => create({ name: 'A', address: accountOf(number) })))
    const [first = '', moved = '', left = '', last = ''] = ids
    for (const number of numbers) office.rpc.register(accountOf(number), keyOf(number))
    const { network, token } = registry()
    const meanwhile: typeof network = {
      call: async (...question) => {
        const answer = await network.call(...question)
        await office.db
          .update(contractors)
          .set({ address: accountOf(60_030) })
          .where(eq(contractors.id, moved))
        await office.db.update(contractors).set({ status: 'inactive' }).where(eq(contractors.id, left))
        return answer
      },
    }
    const [row] = await office.db.select().from(contractors).where(eq(contractors.id, first))
    const given = { network: meanwhile, token }
    await activateContractors(office.db, given, row?.organisation ?? '', ids, { actor, now: NOW })
    const rows = await office.db.select().from(contractors).where(inArray(contractors.id, ids))
    expect(Object.fromEntries(rows.map(({ id, status, pvk }) => [id, [status, pvk]]))).toEqual({
      [first]: ['ready', keyOf(60_021)],
      [moved]: ['invited', null],
      [left]: ['inactive', null],
      [last]: ['ready', keyOf(60_024)],
    })
    const entries = await office.db.select().from(auditLog).where(eq(auditLog.action, 'contractor.activated'))
    expect(entries.flatMap(({ subjectId }) => (ids.includes(subjectId) ? subjectId : [])).toSorted()).toEqual(
      [first, last].toSorted(),
    )
  })

  test('comes with a look at the list or at one of it, at most once in 30 s for an organisation', async () => {
    const addresses = [60_041, 60_042].map(accountOf)
    const ids = await Promise.all(addresses.map((address) => create({ name: 'A', address })))
    const [first = '', second = ''] = ids
    const look = async (path: string) => (await office.call(session, 'GET', `/contractors${path}`)).body
    const later = async (seconds: number) => {
      office.clock.now = new Date(NOW.getTime() + seconds * 1000)
      session = await office.wallet(accountOf(employers))
    }
    office.rpc.requests.length = 0
    await look('')
    expect(office.rpc.requests).toEqual([2])
    office.rpc.register(accountOf(60_041), keyOf(60_041))
    await later(29.999)
    expect(await look(`/${first}`)).toMatchObject({ status: 'invited' })
    expect(office.rpc.requests).toEqual([2])
    await later(30)
    expect(await look(`/${first}`)).toMatchObject({ status: 'ready', pvk: keyOf(60_041) })
    expect(office.rpc.requests).toEqual([2, 2])
    office.rpc.register(accountOf(60_042), keyOf(60_042))
    await later(60)
    const { contractors: list } = (await look('')) as { contractors: { id: string; status: string }[] }
    expect(Object.fromEntries(list.map(({ id, status }) => [id, status]))).toEqual({
      [first]: 'ready',
      [second]: 'ready',
    })
    expect(office.rpc.requests).toEqual([2, 2, 1])
    // There is nobody left to ask for.
    await later(120)
    await look('')
    expect(office.rpc.requests).toEqual([2, 2, 1])
  })

  test('comes with a look of the contractor itself, and while the ledger is away the look is answered', async () => {
    const own = accountOf(60_050)
    const id = await create({ name: 'A', address: own })
    const contractor = await office.wallet(own)
    const { invite } = (await office.call(contractor, 'GET', '/me')).body as { invite: { token: string } }
    await office.call(contractor, 'POST', `/invites/${invite.token}/accept`)
    office.rpc.fault = 'http-503'
    expect((await office.call(contractor, 'GET', `/contractors/${id}`)).body.status).toBe('onboarding')
    office.rpc.fault = undefined
    office.rpc.register(own, keyOf(60_050))
    office.clock.now = new Date(NOW.getTime() + 30_000)
    const again = await office.wallet(own)
    expect((await office.call(again, 'GET', `/contractors/${id}`)).body.status).toBe('ready')
  })

  test('twenty looks at once are one question', async () => {
    await create({ name: 'A', address: accountOf(60_060) })
    office.rpc.requests.length = 0
    await Promise.all(Array.from({ length: 20 }, () => office.call(session, 'GET', '/contractors')))
    expect(office.rpc.requests).toEqual([1])
  })

  test('leaves the contractors of others alone', async () => {
    const address = accountOf(60_010)
    const id = await create({ name: 'A', address })
    office.rpc.register(address, keyOf(1))
    session = await office.wallet(accountOf(60_011))
    const stranger = await create({ name: 'B' })
    const [row] = await office.db.select().from(contractors).where(eq(contractors.id, stranger))
    await activateContractors(office.db, registry(), row?.organisation ?? '', [id], { actor, now: NOW })
    const [kept] = await office.db.select().from(contractors).where(eq(contractors.id, id))
    expect(kept?.status).toBe('invited')
  })

  test('the sweep looks at everybody who waits, 200 at a time', async () => {
    const numbers = Array.from({ length: 450 }, (_, n) => 70_000 + n)
    const rows = numbers.map((number) => ({ name: `n${number}`, address: accountOf(number) }))
    await office.call(session, 'POST', '/contractors/bulk', { rows })
    for (const number of [70_000, 70_250, 70_449]) office.rpc.register(accountOf(number), keyOf(number))
    office.rpc.requests.length = 0
    expect(await sweepRegistrations(office.db, registry(), NOW)).toBeGreaterThanOrEqual(3)
    expect(office.rpc.requests.length).toBeGreaterThanOrEqual(3)
    expect(office.rpc.requests.slice(0, -1).every((count) => count === 200)).toBe(true)
    const ready = await office.db
      .select()
      .from(contractors)
      .where(eq(contractors.address, accountOf(70_449)))
    expect(ready).toMatchObject([{ status: 'ready', pvk: keyOf(70_449) }])
    expect(await sweepRegistrations(office.db, registry(), NOW)).toBe(0)
  })
})

describe('on the embedded ledger', () => {
  let ground: Ground
  beforeAll(async () => {
    ground = await openGround()
  })
  afterAll(() => ground.close())

  test('a registered account has the viewing key of its holder, another address none', async () => {
    const holder = await enrol(ground.network)
    const network = openNetwork({ name: 'local', passphrase: '', rpcUrl: ground.devnet.rpcUrl, pollMs: 250 })
    const contract = StrKey.encodeContract(new Uint8Array(32).fill(1))
    const stranger = accountOf(90_000)
    const address = holder.signer.publicKey()
    const found = await lookUpRegistrations({ network, token: ground.network.token }, [stranger, address, contract])
    expect(Object.fromEntries(found)).toEqual({
      [address]: { state: 'registered', pvk: Buffer.from(holder.keys.viewingKey).toString('hex') },
      [stranger]: { state: 'absent' },
      [contract]: { state: 'absent' },
    })
  })
})
