import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { openStore, type Store } from '#lib/db/connection.ts'
import { sweepRegistrations } from '#lib/directory/contractors/activation.ts'
import { provideService } from '#lib/server/services.ts'
import type { Method } from '../support/api-client.ts'
import { captureLog } from '../support/console.ts'
import { accountOf, atNoon, fieldsOf, idOf, keyOf, NOW } from '../support/directory.ts'
import { openTestService, type TestService } from '../support/test-service.ts'

/** PGlite is one connection: a verb that asks the database for another inside its transaction never ends. */
let pglite: Store
let service: TestService<'fake'>

beforeAll(async () => {
  service = await openTestService(atNoon())
  pglite = openStore({ directory: null })
  provideService(Promise.resolve({ ...service.running, database: pglite.database, now: () => NOW }))
})
afterAll(async () => {
  await pglite.close()
  await service.close()
})
beforeEach(() => {
  captureLog()
})
afterEach(() => {
  vi.restoreAllMocks()
})

test('every verb of the directory runs on the embedded database', async () => {
  const [employer, person] = [await service.wallet(accountOf(1)), await service.wallet(accountOf(2))]
  const user = await service.user('gil', 'gil@b.example')
  const call = async (session: string, method: Method, path: string, body?: unknown) => {
    const answer = await service.ask(method, path, { session, body })
    expect([method, path, answer.status, answer.body.error]).toEqual([method, path, 200, undefined])
    return answer
  }
  await call(employer, 'PATCH', '/me', { orgName: 'Acme' })
  await call(employer, 'POST', '/me/identities', { session: user })
  const rows = Array.from({ length: 30 }, (_, n) => ({
    name: `n${n}`,
    email: `n${n}@b.example`,
    address: accountOf(100 + n),
  }))
  service.ledger.register(accountOf(100), keyOf(100))
  await call(employer, 'POST', '/contractors/bulk', { rows: [...rows, ...rows] })
  const id = idOf(
    await call(employer, 'POST', '/contractors', { name: 'Ann', rate: { amount: '1', currency: 'USDC' } }),
  )
  const names: unknown[] = []
  for (let query = '?limit=10'; query !== ''; ) {
    const page = await call(user, 'GET', `/contractors${query}`)
    names.push(...fieldsOf(page, 'contractors', 'name'))
    query = /^<([^>]*)>/.exec(page.headers.get('link') ?? '')?.[1] ?? ''
  }
  expect(names).toEqual(['Ann', ...rows.map(({ name }) => name).reverse()])
  const { body } = await call(employer, 'POST', `/contractors/${id}/invite`)
  await call(person, 'GET', '/me')
  await call(person, 'POST', `/invites/${String(body.inviteUrl).split('/').at(-1)}/accept`)
  expect((await call(person, 'GET', '/me')).body).toMatchObject({ roles: ['contractor'], contractor: { id } })
  service.ledger.register(accountOf(2), keyOf(2))
  expect(
    await sweepRegistrations({ db: await pglite.database(), accounts: service.running.confidentialAccounts, now: NOW }),
  ).toBe(1)
  expect((await call(person, 'GET', `/contractors/${id}`)).body).toMatchObject({ status: 'ready', pvk: keyOf(2) })
  await call(employer, 'PATCH', `/contractors/${id}`, { status: 'inactive' })
  await call(employer, 'DELETE', `/contractors/${id}`)
})
