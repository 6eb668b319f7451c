import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import * as email from '#app/invite/email/route.ts'
import { beginSignIn, finishSignIn } from '#lib/auth/oidc/authorization.ts'
import { startTestProvider, type TestProvider } from './provider-server.ts'

const DISCOVERY = '/.well-known/openid-configuration'
let server: TestProvider

beforeAll(async () => {
  server = await startTestProvider()
})
afterAll(() => server.close())
afterEach(() => {
  vi.useRealTimers()
})

const clientOf = (issuer: string) => ({
  provider: { issuer, audience: 'pay', algorithms: ['ES256'], emailClaim: 'email' },
  clientId: 'web',
  redirectUri: 'https://pay.example/invite/sign-in',
})
const begin = () => beginSignIn(clientOf(server.origin), { choosesAccount: false })

test('fetches the endpoints again after a failure, and not after a success', async () => {
  await expect(begin()).rejects.toMatchObject({ code: 'unavailable' })
  const body = {
    issuer: server.origin,
    jwks_uri: `${server.origin}/jwks`,
    authorization_endpoint: `${server.origin}/authorize`,
  }
  server.documents.set(DISCOVERY, { body })
  const signIns = await Promise.all([begin(), begin(), begin()])
  signIns.push(await begin())
  expect(signIns.every(({ location }) => location.startsWith(`${server.origin}/authorize?`))).toBe(true)
  expect(new Set(signIns.map(({ state }) => state)).size).toBe(4)
  expect(server.requests).toEqual([DISCOVERY, DISCOVERY])
})

test('follows a provider that moves its endpoints after an hour', async () => {
  const began = Date.now()
  vi.useFakeTimers({ toFake: ['Date'], now: began })
  const provider = await startTestProvider()
  const { origin } = provider
  const publish = (path: string) => {
    const body = { issuer: origin, jwks_uri: `${origin}/jwks`, authorization_endpoint: `${origin}${path}` }
    provider.documents.set(DISCOVERY, { body })
  }
  const page = async () => new URL((await beginSignIn(clientOf(origin), { choosesAccount: false })).location).pathname
  try {
    publish('/authorize')
    expect(await page()).toBe('/authorize')
    publish('/moved')
    vi.setSystemTime(began + 60 * 60_000 - 1)
    expect(await page()).toBe('/authorize')
    vi.setSystemTime(began + 60 * 60_000)
    expect(await page()).toBe('/moved')
    expect(provider.requests).toEqual([DISCOVERY, DISCOVERY])
  } finally {
    await provider.close()
  }
})

test.each([
  ['a provider that lists no prompts', undefined, 'select_account'],
  ['a provider that has the prompt', ['none', 'login', 'select_account'], 'select_account'],
  ['a provider that lacks it', ['none', 'login', 'consent'], 'login'],
])('asks %s to let the user choose an account, only if requested', async (_, prompts, expected) => {
  const provider = await startTestProvider()
  try {
    const { origin } = provider
    const body = {
      issuer: origin,
      jwks_uri: `${origin}/jwks`,
      authorization_endpoint: `${origin}/authorize`,
      ...(prompts && { prompt_values_supported: prompts }),
    }
    provider.documents.set(DISCOVERY, { body })
    const promptOf = async (choosesAccount: boolean) =>
      new URL((await beginSignIn(clientOf(origin), { choosesAccount })).location).searchParams.get('prompt')
    expect([await promptOf(true), await promptOf(false)]).toEqual([expected, null])
  } finally {
    await provider.close()
  }
})

test.each([
  ['refuses the code', { status: 400, body: { error: 'invalid_grant' } }, 'identity-token-invalid'],
  ['returns no token', { body: {} }, 'identity-token-invalid'],
  ['fails', { status: 503 }, 'unavailable'],
] as const)('handles a provider that %s at the end of a sign-in', async (_, answer, code) => {
  const provider = await startTestProvider()
  try {
    const { origin } = provider
    const endpoints = { authorization_endpoint: `${origin}/authorize`, token_endpoint: `${origin}/token` }
    provider.documents.set(DISCOVERY, { body: { issuer: origin, jwks_uri: `${origin}/jwks`, ...endpoints } })
    provider.documents.set('/token', answer)
    const pending = await beginSignIn(clientOf(origin), { choosesAccount: false })
    const returned = new URL(`https://pay.example/invite/sign-in?code=1&state=${pending.state}`)
    await expect(finishSignIn(clientOf(origin), pending, returned)).rejects.toMatchObject({ code })
    const refused = new URL(`https://pay.example/invite/sign-in?error=access_denied&state=${pending.state}`)
    const end = finishSignIn(clientOf(origin), pending, refused)
    await expect(end).rejects.toMatchObject({ code: 'identity-token-invalid' })
  } finally {
    await provider.close()
  }
})

test('reports a provider that is down at the end of a sign-in as unavailable', async () => {
  const provider = await startTestProvider()
  const { origin } = provider
  const endpoints = { authorization_endpoint: `${origin}/authorize`, token_endpoint: `${origin}/token` }
  provider.documents.set(DISCOVERY, { body: { issuer: origin, jwks_uri: `${origin}/jwks`, ...endpoints } })
  const pending = await beginSignIn(clientOf(origin), { choosesAccount: false })
  await provider.close()
  const returned = new URL(`https://pay.example/invite/sign-in?code=1&state=${pending.state}`)
  await expect(finishSignIn(clientOf(origin), pending, returned)).rejects.toMatchObject({ code: 'unavailable' })
})

test('refuses a client that requests too many sessions by email', async () => {
  const ask = async () => {
    const headers = { 'content-type': 'application/json', 'x-client-address': '192.0.2.77' }
    const request = new Request('https://pay.example/invite/email', { method: 'POST', headers, body: '{}' })
    return (await email.POST(request, {})).status
  }
  expect(await Promise.all(Array.from({ length: 400 }, ask))).toContain(429)
})
