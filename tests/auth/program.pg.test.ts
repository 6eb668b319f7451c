import { decodeJwt } from 'jose'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Method } from '../support/api-client.ts'
import { accountOf, fieldsOf, idOf, keyOf } from '../support/directory.ts'
import { openTestService, type TestService } from '../support/test-service.ts'
import { AUDIENCE, type OidcServer, openOidcServer } from './oidc-server.ts'

// docs/events.md, "A program signs in".

let provider: OidcServer
let service: TestService<'fake'>
let program: string
let employer: string

const ask = (method: Method, path: string, session: string, body?: unknown) =>
  service.ask(method, path, { session, ...(body !== undefined && { body }) })
const signIn = async (token: string) =>
  String((await service.ask('POST', '/auth/idp', { body: { token } })).body.session)

beforeAll(async () => {
  provider = await openOidcServer()
  await provider.start()
  const variables = { IDP_ISSUER: provider.issuer, IDP_AUDIENCE: AUDIENCE }
  service = await openTestService({ ledger: 'fake', variables })
  employer = await service.wallet(accountOf(9_300))
  await ask('PATCH', '/me', employer, { orgName: 'Analytical Engines' })
  program = await signIn(await provider.admitProgram())
})
afterAll(async () => {
  await service.close()
  await provider.stop()
})

test('a client-credentials token opens a session of the program, which sees nothing of the employer', async () => {
  const token = await provider.admitProgram()
  expect(decodeJwt(token)).toMatchObject({ iss: provider.issuer, aud: AUDIENCE, sub: 'erp' })
  const session = await signIn(token)
  expect(decodeJwt(session).exp).toBe(decodeJwt(token).exp)
  expect((await ask('GET', '/me', session)).body).toMatchObject({
    sub: 'erp',
    kind: 'idp',
    employer: { orgName: 'erp' },
  })
})

test('joined to the employer, it prepares and reads the payroll', async () => {
  expect((await ask('POST', '/me/identities', employer, { session: program })).status).toBe(200)
  expect((await ask('GET', '/me', program)).body).toMatchObject({
    roles: ['employer'],
    employer: { orgName: 'Analytical Engines' },
  })
  const address = accountOf(9_301)
  service.ledger.register(address, keyOf(9_301))
  const rows = [{ name: 'Ada', address, externalId: 'hr/17' }]
  expect((await ask('POST', '/contractors/bulk', program, { rows })).body).toMatchObject({ errors: [] })
  const batch = idOf(await ask('POST', '/batches', program, { name: 'March', externalId: 'payroll/2026-03' }))
  const [contractorId] = fieldsOf(await ask('GET', '/contractors?externalId=hr%2F17', program), 'contractors', 'id')
  const instructions = [{ contractorId, encryptedAmount: 'sealed', externalId: '2026-03/hr/17' }]
  expect((await ask('POST', `/batches/${batch}/instructions`, program, { instructions })).body).toMatchObject({
    errors: [],
  })
  expect((await ask('POST', `/batches/${batch}/ready`, program)).status).toBe(200)
  // The employer's wallet sees the same records.
  expect(fieldsOf(await ask('GET', '/batches', employer), 'batches', 'id')).toEqual([batch])
  const { events } = (await ask('GET', '/events', program)).body as { events: { type: string }[] }
  expect(events.map(({ type }) => type)).toEqual(
    expect.arrayContaining(['contractor.created', 'batch.created', 'payout.created', 'batch.ready']),
  )
})

test('it can never pay', async () => {
  const [batch] = fieldsOf(await ask('GET', '/batches', program), 'batches', 'id')
  const signedXDR = 'AAAA'
  const signature = Buffer.alloc(64, 1).toString('base64')
  const attempts = await Promise.all([
    ask('POST', '/transfer', program, { signedXDR }),
    ask('POST', '/calls', program, { signedXDR }),
    ask('POST', `/batches/${batch}/run`, program, { signature }),
  ])
  // A run takes a wallet's signature: tests/relay/approvals.pg.test.ts.
  expect(attempts.map(({ status, body }) => [status, body.code])).toEqual([
    [501, 'wallet-required'],
    [501, 'wallet-required'],
    [501, 'runs-not-wired'],
  ])
})

test('it cannot join or remove others, and so not outlive its removal', async () => {
  const stranger = await service.wallet(accountOf(9_302))
  const attempts = [
    await ask('POST', '/me/identities', program, { session: stranger }),
    await ask('DELETE', '/me/identities/ledger', program),
  ]
  expect(attempts.map(({ status, body }) => [status, body.code])).toEqual(Array(2).fill([403, 'identity-joined']))
  expect(fieldsOf(await ask('GET', '/batches', stranger), 'batches', 'id')).toEqual([])
})

test('it does not become the owner of an employer who has no organisation yet, and may leave by itself', async () => {
  const first = await signIn((await provider.logIn('dora')).access_token)
  const later = await service.wallet(accountOf(9_303))
  await ask('GET', '/me', later)
  expect((await ask('POST', '/me/identities', later, { session: first })).status).toBe(200)
  await ask('POST', '/contractors', later, { name: 'Ada' })
  expect((await ask('DELETE', '/me/identities/ledger', first)).body.code).toBe('identity-joined')
  expect((await ask('DELETE', '/me/identities/idp?sub=dora', first)).status).toBe(200)
  expect(fieldsOf(await ask('GET', '/contractors', later), 'contractors', 'name')).toEqual(['Ada'])
  expect(fieldsOf(await ask('GET', '/contractors', first), 'contractors', 'name')).toEqual([])
})

test('it can be removed alone, and then sees nothing', async () => {
  const person = await signIn((await provider.logIn('alice')).access_token)
  expect((await ask('POST', '/me/identities', employer, { session: person })).status).toBe(200)
  expect((await ask('DELETE', '/me/identities/idp?sub=bob', employer)).body.code).toBe('identity-not-found')
  const { body } = await ask('DELETE', '/me/identities/idp?sub=erp', employer)
  expect(body.identities).toEqual([
    expect.objectContaining({ kind: 'ledger' }),
    expect.objectContaining({ kind: 'idp', sub: 'alice' }),
  ])
  expect(fieldsOf(await ask('GET', '/batches', person), 'batches', 'id')).toHaveLength(1)
  const { events } = (await ask('GET', '/events', program)).body as { events: unknown[] }
  expect(events).toEqual([])
  expect(fieldsOf(await ask('GET', '/batches', program), 'batches', 'id')).toEqual([])
})
