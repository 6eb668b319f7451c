import { StrKey } from '@stellar/stellar-sdk'
import { and, eq, inArray } from 'drizzle-orm'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test, vi } from 'vitest'
import { auditLog } from '#drizzle/schema/audit.ts'
import { contractors, organisations } from '#drizzle/schema/directory.ts'
import { enrol } from '#lib/cli/client/participants.ts'
import { contractorRow, insertRows } from '#lib/cli/seed/rows.ts'
import { activateContractors, sweepRegistrations } from '#lib/directory/contractors/activation.ts'
import {
  type ConfidentialAccounts,
  findViewingKeys,
  lookUpViewingKeys,
} from '#lib/directory/contractors/registration.ts'
import { accountKey } from '#lib/stellar/confidential-token.ts'
import type { EntryReader } from '#lib/stellar/entries.ts'
import { openNetwork } from '#lib/stellar/network.ts'
import { captureLog } from '../support/console.ts'
import { accountOf, atNoon, contextOf, idOf, keyOf, NOW } from '../support/directory.ts'
import { TOKEN } from '../support/fake-rpc.ts'
import { startTestLedger, type TestLedger } from '../support/test-ledger.ts'
import { openTestService, type TestService } from '../support/test-service.ts'

let service: TestService<'fake'>
let session: string
let employers = 3_000

beforeAll(async () => {
  service = await openTestService(atNoon())
})
afterAll(() => service.close())
beforeEach(async () => {
  captureLog()
  service.clock.now = NOW
  employers += 1
  session = await service.wallet(accountOf(employers))
  Object.assign(service.ledger, { fault: undefined, result: undefined, requests: [] })
})
afterEach(() => {
  vi.restoreAllMocks()
})

const accounts = () => service.running.confidentialAccounts
const create = async (body: object) => idOf(await service.ask('POST', '/contractors', { session, body }))
const statusOf = async (id: string) => (await service.ask('GET', `/contractors/${id}`, { session })).body.status
const actor = { kind: 'service', sub: 'test' } as const
const activating = async (organisation = '', confidentialAccounts: ConfidentialAccounts = accounts()) => ({
  ...(await contextOf(service)),
  accounts: confidentialAccounts,
  employer: { organisation, actor },
})

describe('the registration of an address', () => {
  const [registered, archived, forgotten, confused, absent] = [1, 2, 3, 4, 5].map(accountOf) as [
    string,
    string,
    string,
    string,
    string,
  ]

  test('returns the key of a registered or archived address, null for another contract’s entry, and nothing for an absent one', async () => {
    service.ledger.register(registered, keyOf(1))
    service.ledger.register(archived, keyOf(2), 0)
    service.ledger.register(forgotten, keyOf(3), service.ledger.latestLedger - 1)
    service.ledger.confuse(confused)
    const keys = await lookUpViewingKeys(accounts(), [absent, confused, forgotten, archived, registered, registered])
    expect(Object.fromEntries(keys)).toEqual({
      [registered]: keyOf(1),
      [archived]: keyOf(2),
      [forgotten]: keyOf(3),
      [confused]: null,
    })
    expect(service.ledger.requests).toEqual([5])
  })

  test('marks a contractor with an archived entry as ready, but not one with another contract’s entry', async () => {
    const bodies = await Promise.all(
      [archived, confused].map(
        async (address) => (await service.ask('POST', '/contractors', { session, body: { name: 'A', address } })).body,
      ),
    )
    expect(bodies.map(({ status, pvk }) => [status, pvk])).toEqual([
      ['ready', keyOf(2)],
      ['invited', undefined],
    ])
  })

  test('makes one request for 200 different addresses', async () => {
    const addresses = Array.from({ length: 401 }, (_, n) => accountOf(50_000 + n))
    for (const number of [50_000, 50_199, 50_200, 50_400]) service.ledger.register(accountOf(number), keyOf(number))
    const keys = await lookUpViewingKeys(accounts(), [...addresses, ...addresses])
    expect(service.ledger.requests).toEqual([200, 200, 1])
    expect([...keys.keys()]).toEqual([50_000, 50_199, 50_200, 50_400].map(accountOf))
  })

  test('makes no request without addresses or without a token', async () => {
    expect((await lookUpViewingKeys(accounts(), [])).size).toBe(0)
    const keys = await lookUpViewingKeys({ ...accounts(), token: undefined }, [registered])
    expect(keys.size).toBe(0)
    expect(service.ledger.requests).toEqual([])
  })

  test('fails in lookUpViewingKeys while the ledger is unreachable, and returns none from findViewingKeys', async () => {
    service.ledger.fault = 'http-503'
    const refusal = { code: 'unavailable', message: 'the ledger cannot be reached' }
    await expect(lookUpViewingKeys(accounts(), [registered])).rejects.toMatchObject(refusal)
    expect(await findViewingKeys(accounts(), [registered])).toEqual(new Map())
  })

  test.each<[string, unknown]>([
    ['an entry that was not requested', { latestLedger: 7, entries: [{ key: 'AAAA', xdr: 'AAAA' }] }],
    [
      'an entry that is not XDR',
      { latestLedger: 7, entries: [{ key: accountKey(TOKEN, registered).toXdr('base64'), xdr: 'AAAA' }] },
    ],
    ['no ledger number', { entries: [] }],
    ['entries that are not a list', { latestLedger: 7, entries: 'x' }],
  ])('treats %s as unavailable', async (_what, result) => {
    service.ledger.result = result
    await expect(lookUpViewingKeys(accounts(), [registered])).rejects.toMatchObject({ code: 'unavailable' })
  })
})

describe('activation', () => {
  test('activates only waiting contractors who have registered since', async () => {
    const [late, never, other] = [accountOf(60_001), accountOf(60_002), accountOf(60_003)]
    const ids = await Promise.all([late, never, other].map((address) => create({ name: 'A', address })))
    const [lateId = '', neverId = '', otherId = ''] = ids
    await service.ask('PATCH', `/contractors/${otherId}`, { session, body: { status: 'inactive' } })
    service.ledger.register(late, keyOf(1))
    service.ledger.register(other, keyOf(3))
    const [row] = await service.db.select().from(contractors).where(eq(contractors.id, lateId))
    service.ledger.requests.length = 0
    await activateContractors(await activating(row?.organisation), [...ids, 'no id'])
    expect(service.ledger.requests).toEqual([2])
    expect(await Promise.all([lateId, neverId, otherId].map(statusOf))).toEqual(['ready', 'invited', 'inactive'])
    const isIts = and(eq(auditLog.action, 'contractor.activated'), eq(auditLog.subjectId, lateId))
    const [entry] = await service.db.select().from(auditLog).where(isIts)
    expect(entry).toMatchObject({ subjectId: lateId, actorKind: 'service', actorSub: 'test' })
  })

  test('has an entry for each way in which a contractor becomes ready, once', async () => {
    const [registered, later] = [accountOf(60_011), accountOf(60_012)]
    service.ledger.register(registered, keyOf(11))
    service.ledger.register(later, keyOf(12))
    const created = await create({ name: 'A', address: registered })
    const moved = await create({ name: 'B' })
    const change = (body: object) => service.ask('PATCH', `/contractors/${moved}`, { session, body })
    await change({ address: later })
    await change({ name: 'C' })
    const actionsOf = async (id: string) => {
      const rows = await service.db.select().from(auditLog).where(eq(auditLog.subjectId, id)).orderBy(auditLog.sequence)
      return rows.map(({ action }) => action)
    }
    expect(await actionsOf(created)).toEqual(['contractor.created', 'contractor.activated'])
    expect(await actionsOf(moved)).toEqual([
      ...['contractor.created', 'contractor.updated', 'contractor.activated', 'contractor.updated'],
    ])
  })

  test('gives each contractor its key, and skips those that changed during the lookup', async () => {
    const numbers = [60_021, 60_022, 60_023, 60_024]
    const ids = await Promise.all(numbers.map((number) => create({ name: 'A', address: accountOf(number) })))
    const [first = '', moved = '', left = '', last = ''] = ids
    for (const number of numbers) service.ledger.register(accountOf(number), keyOf(number))
    const { network, token } = accounts()
    const meanwhile: EntryReader = {
      getLedgerEntries: async (...keys) => {
        const answer = await network.server.getLedgerEntries(...keys)
        await service.db
          .update(contractors)
          .set({ address: accountOf(60_030) })
          .where(eq(contractors.id, moved))
        await service.db.update(contractors).set({ status: 'inactive' }).where(eq(contractors.id, left))
        return answer
      },
    }
    const [row] = await service.db.select().from(contractors).where(eq(contractors.id, first))
    const lookedUp = { network: { server: meanwhile }, token }
    await activateContractors(await activating(row?.organisation, lookedUp), ids)
    const rows = await service.db.select().from(contractors).where(inArray(contractors.id, ids))
    expect(Object.fromEntries(rows.map(({ id, status, pvk }) => [id, [status, pvk]]))).toEqual({
      [first]: ['ready', keyOf(60_021)],
      [moved]: ['invited', null],
      [left]: ['inactive', null],
      [last]: ['ready', keyOf(60_024)],
    })
    const entries = await service.db.select().from(auditLog).where(eq(auditLog.action, 'contractor.activated'))
    expect(entries.flatMap(({ subjectId }) => (ids.includes(subjectId) ? subjectId : [])).toSorted()).toEqual(
      [first, last].toSorted(),
    )
  })

  test('runs when one contractor is read, even if a thousand newer ones wait', async () => {
    const id = await create({ name: 'Old', address: accountOf(60_101) })
    const [row] = await service.db.select().from(contractors).where(eq(contractors.id, id))
    const { organisation = '' } = row ?? {}
    const newer = Array.from({ length: 1_000 }, (_, index) =>
      contractorRow({ organisation, status: 'invited', address: accountOf(70_000 + index) }),
    )
    await insertRows(service.db, { contractors: newer })
    service.ledger.register(accountOf(60_101), keyOf(1))
    expect(await statusOf(id)).toBe('ready')
    // Another test's sweep counts the waiting contractors of all organisations.
    await service.db.delete(contractors).where(eq(contractors.organisation, organisation))
  })

  test.runIf(inject('postgres'))('never waits for a transaction that locks the organisation', async () => {
    const id = await create({ name: 'Ann', address: accountOf(60_102) })
    service.ledger.register(accountOf(60_102), keyOf(1))
    const [row] = await service.db.select().from(contractors).where(eq(contractors.id, id))
    await service.db.transaction(async (tx) => {
      await tx
        .select()
        .from(organisations)
        .where(eq(organisations.id, row?.organisation ?? ''))
        .for('update')
      expect(await statusOf(id)).toBe('invited')
    })
    expect(await statusOf(id)).toBe('ready')
  })

  test('runs when the list or one contractor is read, at most once in 30 s per organisation', async () => {
    const addresses = [60_041, 60_042].map(accountOf)
    const ids = await Promise.all(addresses.map((address) => create({ name: 'A', address })))
    const [first = '', second = ''] = ids
    const look = async (path: string) => (await service.ask('GET', `/contractors${path}`, { session })).body
    const later = async (seconds: number) => {
      service.clock.now = new Date(NOW.getTime() + seconds * 1000)
      session = await service.wallet(accountOf(employers))
    }
    service.ledger.requests.length = 0
    await look('')
    expect(service.ledger.requests).toEqual([2])
    service.ledger.register(accountOf(60_041), keyOf(60_041))
    await later(29.999)
    expect(await look(`/${first}`)).toMatchObject({ status: 'invited' })
    expect(service.ledger.requests).toEqual([2])
    await later(30)
    expect(await look(`/${first}`)).toMatchObject({ status: 'ready', pvk: keyOf(60_041) })
    expect(service.ledger.requests).toEqual([2, 2])
    service.ledger.register(accountOf(60_042), keyOf(60_042))
    await later(60)
    const { contractors: list } = (await look('')) as { contractors: { id: string; status: string }[] }
    expect(Object.fromEntries(list.map(({ id, status }) => [id, status]))).toEqual({
      [first]: 'ready',
      [second]: 'ready',
    })
    expect(service.ledger.requests).toEqual([2, 2, 1])
    // No candidate is left.
    await later(120)
    await look('')
    expect(service.ledger.requests).toEqual([2, 2, 1])
  })

  test('runs when a contractor reads its record, which works while the ledger is unreachable', async () => {
    const own = accountOf(60_050)
    const id = await create({ name: 'A', address: own })
    const contractor = await service.wallet(own)
    const { invite } = (await service.ask('GET', '/me', { session: contractor })).body as { invite: { token: string } }
    await service.ask('POST', `/invites/${invite.token}/accept`, { session: contractor })
    service.ledger.fault = 'http-503'
    expect((await service.ask('GET', `/contractors/${id}`, { session: contractor })).body.status).toBe('onboarding')
    service.ledger.fault = undefined
    service.ledger.register(own, keyOf(60_050))
    service.clock.now = new Date(NOW.getTime() + 30_000)
    const again = await service.wallet(own)
    expect((await service.ask('GET', `/contractors/${id}`, { session: again })).body.status).toBe('ready')
  })

  test('makes one lookup for twenty concurrent requests', async () => {
    await create({ name: 'A', address: accountOf(60_060) })
    service.ledger.requests.length = 0
    await Promise.all(Array.from({ length: 20 }, () => service.ask('GET', '/contractors', { session })))
    expect(service.ledger.requests).toEqual([1])
  })

  test('leaves the contractors of other organisations unchanged', async () => {
    const address = accountOf(60_010)
    const id = await create({ name: 'A', address })
    service.ledger.register(address, keyOf(1))
    session = await service.wallet(accountOf(60_011))
    const stranger = await create({ name: 'B' })
    const [row] = await service.db.select().from(contractors).where(eq(contractors.id, stranger))
    await activateContractors(await activating(row?.organisation), [id])
    const [unchanged] = await service.db.select().from(contractors).where(eq(contractors.id, id))
    expect(unchanged?.status).toBe('invited')
  })

  test('looks up waiting contractors in the sweep, 200 at a time', async () => {
    const numbers = Array.from({ length: 450 }, (_, n) => 70_000 + n)
    const rows = numbers.map((number) => ({ name: `n${number}`, address: accountOf(number) }))
    await service.ask('POST', '/contractors/bulk', { session, body: { rows } })
    for (const number of [70_000, 70_250, 70_449]) service.ledger.register(accountOf(number), keyOf(number))
    service.ledger.requests.length = 0
    const sweep = async (after?: number) => await sweepRegistrations(await contextOf(service), after)
    expect((await sweep()).activated).toBeGreaterThanOrEqual(3)
    expect(service.ledger.requests.length).toBeGreaterThanOrEqual(3)
    expect(service.ledger.requests.slice(0, -1).every((count) => count === 200)).toBe(true)
    const ready = await service.db
      .select()
      .from(contractors)
      .where(eq(contractors.address, accountOf(70_449)))
    expect(ready).toMatchObject([{ status: 'ready', pvk: keyOf(70_449) }])
    expect(await sweep()).toEqual({ activated: 0, after: 0 })
  })
})

describe('on the embedded ledger', () => {
  let ledger: TestLedger
  beforeAll(async () => {
    ledger = await startTestLedger()
  })
  afterAll(() => ledger.close())

  test('returns the viewing key of a registered account, and none for another address', async () => {
    const holder = await enrol(ledger.network)
    const network = openNetwork({ name: 'local', passphrase: '', rpcUrl: ledger.devnet.rpcUrl, pollMs: 250 })
    const contract = StrKey.encodeContract(new Uint8Array(32).fill(1))
    const stranger = accountOf(90_000)
    const address = holder.signer.publicKey()
    const keys = await lookUpViewingKeys({ network, token: ledger.network.token }, [stranger, address, contract])
    expect(Object.fromEntries(keys)).toEqual({ [address]: Buffer.from(holder.keys.viewingKey).toString('hex') })
  })
})
