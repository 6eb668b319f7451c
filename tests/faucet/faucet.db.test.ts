import { Keypair, StrKey } from '@stellar/stellar-sdk'
import { eq, sql } from 'drizzle-orm'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { transfers } from '#drizzle/schema/transfers.ts'
import { verifySession } from '#lib/auth/session.ts'
import { contractorRow, identityRow, insertRows, organisationRow } from '#lib/cli/seed/rows.ts'
import { joinIdentity } from '#lib/directory/joined-identities.ts'
import { admitUser } from '#lib/directory/users.ts'
import { directoryContext } from '#lib/server/services.ts'
import type { RunningService } from '#lib/server/start.ts'
import { openTestService, type TestService } from '../support/test-service.ts'
import { FAUCET, type Faucet, openFaucet, startAnother } from './faucet.ts'

const AMOUNT = 1_000_0000000n

let service: TestService<'embedded'>
let faucet: Faucet
let other: RunningService
beforeAll(async () => {
  service = await openTestService(FAUCET)
  faucet = openFaucet(service)
  other = await startAnother(service)
})
afterAll(async () => {
  await other?.close()
  await service?.close()
})
afterEach(() => service.ledger.proxy.rule(null))

test('deposits a thousand USDC, spendable after a merge', async () => {
  const person = await faucet.settle()
  const answer = await faucet.ask(person.session)
  expect(answer).toEqual({ status: 200, retryAfter: null, body: { hash: expect.stringMatching(/^[0-9a-f]{64}$/) } })
  expect(await faucet.deposits(person.address)).toEqual([answer.body.hash])
  expect(await faucet.spendable(person)).toBe(AMOUNT)
  expect(await faucet.grant(person.address)).toMatchObject({
    status: 'granted',
    hash: answer.body.hash,
    faucet: service.ledger.issuer.publicKey(),
    resultCode: 'txSuccess',
  })
})

test.each(['FAUCET_SEED', 'CONFIDENTIAL_TOKEN'])(
  'responds 501 without %s, even to a user without an account',
  async (missing) => {
    const another = await startAnother(service, { [missing]: '' })
    const session = await service.user('nobody')
    const refusal = { status: 501, body: { error: 'no faucet is configured', code: 'faucet-not-configured' } }
    expect(await faucet.ask(session, another)).toMatchObject(refusal)
    await another.close()
  },
)

test('responds 409 to an unregistered account, without starting the cool-down', async () => {
  const person = Keypair.random().publicKey()
  const session = await service.wallet(person)
  const refusal = {
    status: 409,
    retryAfter: null,
    body: { error: 'the account is not registered with the confidential token', code: 'account-unregistered' },
  }
  expect(await faucet.ask(session)).toEqual(refusal)
  expect(await faucet.ask(session)).toEqual(refusal)
  expect(await faucet.grant(person)).toBeUndefined()
})

test('deposits the grant of an identity provider’s user in the wallet that the user joined', async () => {
  const person = await faucet.settle()
  const session = await service.user('joan')
  const sessions = service.running.settings.sessions
  const now = service.running.now()
  const context = await directoryContext(service.running)
  const user = await admitUser(context, await verifySession(sessions, session, now))
  const wallet = await service.wallet(person.address)
  await joinIdentity({ ...context, user }, await verifySession(sessions, wallet, now))
  expect(await faucet.ask(session)).toMatchObject({ status: 200 })
  expect(await faucet.deposits(person.address)).toHaveLength(1)
})

test('responds 409 to a user of an identity provider without a linked contractor record that has an address', async () => {
  const identity = { kind: 'idp', sub: 'jane', issuer: 'https://login.example' } as const
  const session = await service.sessionOf(identity)
  const refusal = { status: 409, retryAfter: null, body: { error: 'no ledger account', code: 'account-missing' } }
  expect(await faucet.ask(session)).toEqual(refusal)

  const organisation = organisationRow()
  const link = { linkedKind: 'idp', linkedSub: 'jane' } as const
  const record = { organisation: organisation.id, name: 'Jane', status: 'onboarding' } as const
  await insertRows(service.db, { organisations: [organisation], contractors: [contractorRow({ ...record, ...link })] })
  expect(await faucet.ask(session)).toEqual(refusal)

  const person = await faucet.settle()
  const stranger = await faucet.settle()
  await insertRows(service.db, { contractors: [contractorRow({ ...record, address: stranger.address })] })
  expect(await faucet.ask(session)).toEqual(refusal)
  await insertRows(service.db, { contractors: [contractorRow({ ...record, ...link, address: person.address })] })
  const answer = await faucet.ask(session)
  expect(answer).toMatchObject({ status: 200 })
  expect(await faucet.deposits(person.address)).toEqual([answer.body.hash])
  // Both sessions request a grant for the same account.
  expect(await faucet.ask(person.session)).toMatchObject({ status: 429 })
})

test('refuses a user of another provider with the same sub', async () => {
  await insertRows(service.db, { identities: [identityRow({ kind: 'idp', sub: 'joe' })] })
  const session = await service.sessionOf({ kind: 'idp', sub: 'joe', issuer: 'https://other.example' })
  expect(await faucet.ask(session)).toMatchObject({ status: 403 })
})

test('responds 409 to the address of an unregistered contract', async () => {
  const identity = { kind: 'idp', sub: 'contract', issuer: 'https://login.example' } as const
  const session = await service.sessionOf(identity)
  await faucet.ask(session)
  const organisation = organisationRow()
  const contractor = contractorRow({
    organisation: organisation.id,
    name: 'A contract',
    status: 'onboarding',
    linkedKind: 'idp',
    linkedSub: 'contract',
    address: StrKey.encodeContract(new Uint8Array(32).fill(9)),
  })
  await insertRows(service.db, { organisations: [organisation], contractors: [contractor] })
  expect(await faucet.ask(session)).toMatchObject({
    status: 409,
    body: { error: expect.stringContaining('registered') },
  })
})

test('deposits once for twenty concurrent calls of one user to two services, and refuses nineteen as too soon', async () => {
  const person = await faucet.settle()
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, i) => faucet.ask(person.session, i % 2 === 0 ? service.running : other)),
  )
  expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(19).fill(429)])
  for (const { status, retryAfter, body } of answers) {
    if (status !== 429) continue
    const error = 'the faucet funds an account once every 3600 seconds'
    expect(body).toMatchObject({ error, code: 'faucet-cooldown' })
    expect(Number(retryAfter)).toBeGreaterThan(3500)
    expect(Number(retryAfter)).toBeLessThanOrEqual(3600)
  }
  expect(await faucet.deposits(person.address)).toHaveLength(1)
})

test('ends the cool-down by the database’s clock, and adds the second grant to the first', async () => {
  const person = await faucet.settle()
  expect(await faucet.ask(person.session)).toMatchObject({ status: 200 })
  await ageGrant(person.address, 3_590)
  const early = await faucet.ask(person.session)
  expect(early.status).toBe(429)
  expect(Number(early.retryAfter)).toBeGreaterThanOrEqual(1)
  expect(Number(early.retryAfter)).toBeLessThanOrEqual(10)
  await ageGrant(person.address, 10)
  expect(await faucet.ask(person.session)).toMatchObject({ status: 200 })
  expect(await faucet.deposits(person.address)).toHaveLength(2)
  expect(await faucet.spendable(person)).toBe(2n * AMOUNT)
})

test('makes ten deposits for ten concurrent users of two services on one database, none rejected by the ledger', async () => {
  const people = await Promise.all(Array.from({ length: 10 }, () => faucet.settle()))
  const refused: unknown[] = []
  const note = (sent: Record<string, unknown>) => {
    // Both services poll the open deposits and resubmit them.
    if (sent.status === 'ERROR') refused.push(sent)
    return sent
  }
  service.ledger.proxy.rule(({ method }) => (method === 'sendTransaction' ? { rewrite: note } : 'pass'))
  const answers = await Promise.all(
    people.map(({ session }, i) => faucet.ask(session, i % 2 === 0 ? service.running : other)),
  )
  expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200))
  for (const [i, { address }] of people.entries())
    expect(await faucet.deposits(address)).toEqual([answers[i]?.body.hash])
  expect(refused).toEqual([])
})

test('grants again within the cool-down if the rows of the deposit are lost: a restored database has no memory of it', async () => {
  const person = await faucet.settle()
  expect(await faucet.ask(person.session)).toMatchObject({ status: 200 })
  await service.db.delete(transfers).where(eq(transfers.recipient, person.address))
  expect(await faucet.ask(person.session)).toMatchObject({ status: 200 })
  expect(await faucet.deposits(person.address)).toHaveLength(2)
})

test('uses the configured amount and cool-down', async () => {
  const another = await startAnother(service, { FAUCET_AMOUNT: '0.0000007', FAUCET_COOLDOWN: '0' })
  const person = await faucet.settle()
  expect(await faucet.ask(person.session, another)).toMatchObject({ status: 200 })
  expect(await faucet.ask(person.session, another)).toMatchObject({ status: 200 })
  expect(await faucet.spendable(person)).toBe(14n)
  await another.close()
})

test('leaves no deposit open', async () => {
  const deposits = await service.db.select().from(transfers).where(eq(transfers.kind, 'deposit'))
  expect(new Set(deposits.map(({ status }) => status))).toEqual(new Set(['succeeded']))
})

/** Makes the deposits of an account older by that many seconds. */
const ageGrant = (address: string, seconds: number) =>
  service.db.execute(
    sql`UPDATE transfers SET created_at = created_at - make_interval(secs => ${seconds}) WHERE recipient = ${address}`,
  )
