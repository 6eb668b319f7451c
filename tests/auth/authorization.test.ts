import { afterAll, beforeAll, expect, test } from 'vitest'
import * as email from '#app/invite/email/route.ts'
import { beginSignIn } from '#lib/auth/oidc/authorization.ts'
import { startTestProvider, type TestProvider } from './provider-server.ts'

const DISCOVERY = '/.well-known/openid-configuration'
let server: TestProvider

beforeAll(async () => {
  server = await startTestProvider()
})
afterAll(() => server.close())

const begin = () => {
  const provider = { issuer: server.origin, audience: 'pay', algorithms: ['ES256'], emailClaim: 'email' }
  return beginSignIn({ provider, clientId: 'web', redirectUri: 'https://pay.example/invite/sign-in' })
}

test('a provider that failed is asked for its endpoints again; one that has answered is not', async () => {
  await expect(begin()).rejects.toMatchObject({ code: 'unavailable' })
  const body = { issuer: server.origin, authorization_endpoint: `${server.origin}/authorize` }
  server.documents.set(DISCOVERY, { body })
  const begun = await Promise.all([begin(), begin(), begin()])
  begun.push(await begin())
  expect(begun.every(({ location }) => location.startsWith(`${server.origin}/authorize?`))).toBe(true)
  expect(new Set(begun.map(({ state }) => state)).size).toBe(4)
  expect(server.requests).toEqual([DISCOVERY, DISCOVERY])
})

test('a client that asks for too many sessions by email is refused', async () => {
  const ask = async () => {
    const headers = { 'content-type': 'application/json', 'x-client-address': '192.0.2.77' }
    const request = new Request('https://pay.example/invite/email', { method: 'POST', headers, body: '{}' })
    return (await email.POST(request, {})).status
  }
  const statuses = new Set<number>()
  for (let asked = 0; asked < 400; asked += 1) statuses.add(await ask())
  expect(statuses).toContain(429)
})
