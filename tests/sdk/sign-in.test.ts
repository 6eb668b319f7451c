import { Asset, type Keypair, Memo, Operation, TransactionBuilder, type xdr } from '@stellar/stellar-sdk'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { stellarToml } from '#lib/auth/sep10/stellar-toml.ts'
import { createPayrollClient } from '#lib/sdk/payroll-client.ts'
import { signIn } from '#lib/sdk/sign-in.ts'
import { keypairSigner, type Signer } from '#lib/wallet/signer.ts'
import { craftChallenge, NONCE, NOW, NOW_SECONDS, pair, sep10, webAuthDomain } from '../auth/challenges.ts'
import { type LocalServer, readBody, serveLocally } from '../support/local-server.ts'

const alice = pair('alice')
const { networkPassphrase: network_passphrase } = sep10

/** The service at the address that the caller configured, which may lie. */
const served: { toml: string | undefined; challenge: string; redirect?: string } = { toml: '', challenge: '' }
let service: LocalServer
let host: string

beforeAll(async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: NOW })
  service = await serveLocally(async (request, response) => {
    const path = request.url?.split('?')[0]
    const send = (status: number, body: string) => response.writeHead(status).end(body)
    if (path === '/.well-known/stellar.toml') {
      if (served.redirect) return response.writeHead(302, { location: served.redirect }).end()
      return served.toml === undefined ? send(404, '') : send(200, served.toml)
    }
    if (path === '/api/auth/sep10/challenge') {
      return send(200, JSON.stringify({ transaction: served.challenge, network_passphrase }))
    }
    return send(200, JSON.stringify({ session: JSON.parse(String(await readBody(request))).transaction }))
  })
  host = new URL(service.url).host
})

afterAll(async () => {
  vi.useRealTimers()
  await service.close()
})

beforeEach(() => {
  Object.assign(served, { toml: tomlOf(sep10.signer), challenge: ofService({}), redirect: undefined })
})

const tomlOf = (signer: Keypair) =>
  stellarToml({ ...sep10, signer, homeDomain: host, webAuthDomain: host }, service.url)

type Fields = Parameters<typeof craftChallenge>[0]

/** The operation that names the account and the home domain. */
const accountOperation = (fields: { account?: string; name?: string; value?: string | null } = {}) => {
  const { account: source = alice.publicKey(), name = `${host} auth`, value = NONCE } = fields
  return Operation.manageData({ source, name, value })
}

/** A challenge of the service at the configured address. */
const ofService = (fields: Fields) =>
  craftChallenge({ operations: [accountOperation(), webAuthDomain(host)], ...fields }, []).toXdr()

/** Signs in as alice, and resolves to the signed challenge, which the service returns as the session. */
async function signInAt(options: Parameters<typeof signIn>[2] = {}, signer: Signer = keypairSigner(alice)) {
  return await signIn(createPayrollClient({ baseUrl: `${service.url}/api` }), signer, options)
}

/** The error of a sign-in that signs nothing. */
async function refusal(options: Parameters<typeof signIn>[2] = {}): Promise<unknown> {
  const signTransaction = vi.fn<Signer['signTransaction']>()
  const error: unknown = await signInAt(options, { ...keypairSigner(alice), signTransaction }).catch((cause) => cause)
  expect(signTransaction).not.toHaveBeenCalled()
  return error
}

const invalid = (reason: string) => ({
  name: 'WalletError',
  code: 'challenge-invalid',
  message: expect.stringContaining(`the sign-in challenge of ${service.url} is not signed: ${reason}`),
})

test('signs a challenge of the configured service', async () => {
  const signed = TransactionBuilder.fromXdr(await signInAt(), network_passphrase)
  expect(signed.signatures.some(({ signature }) => alice.verify(signed.hash(), signature))).toBe(true)
})

test('refuses a forwarded challenge of another service, and names both hosts', async () => {
  // The attacker names the signing key of the other service in its own stellar.toml.
  served.challenge = craftChallenge({}, []).toXdr()
  expect(await refusal()).toMatchObject(invalid(`it is for "${sep10.homeDomain}", not for "${host}"`))
})

test('refuses a challenge that another service answers', async () => {
  served.challenge = ofService({ operations: [accountOperation(), webAuthDomain()] })
  expect(await refusal()).toMatchObject(invalid(`it is for "${sep10.webAuthDomain}", not for "${host}"`))
})

test('signs a challenge of a service behind another address that the caller names', async () => {
  served.challenge = craftChallenge({}, []).toXdr()
  expect(await signInAt({ homeDomain: sep10.homeDomain })).toEqual(expect.any(String))
  expect(await refusal({ homeDomain: 'pay.example' })).toMatchObject(
    invalid(`it is for "${sep10.homeDomain}", not for "pay.example"`),
  )
})

const payment = () => Operation.payment({ destination: pair('thief').publicKey(), asset: Asset.native(), amount: '1' })

test.each<[string, () => Fields | string]>([
  [
    'signed by another key',
    () => ({ server: pair('other'), operations: [accountOperation(), webAuthDomain(host, pair('other').publicKey())] }),
  ],
  ['of another source', () => ({ source: pair('other').publicKey() })],
  [
    'for another account',
    () => ({ operations: [accountOperation({ account: pair('bob').publicKey() }), webAuthDomain(host)] }),
  ],
  ['with a sequence number', () => ({ sequence: '0' })],
  ['with a payment', () => ({ operations: [accountOperation(), webAuthDomain(host), payment()] })],
  [
    'with an operation of the account',
    () => ({ operations: [accountOperation(), webAuthDomain(host), accountOperation()] }),
  ],
  ['with a client domain', () => ({ operations: [accountOperation(), webAuthDomain(host), clientDomain()] })],
  ['without a web_auth_domain', () => ({ operations: [accountOperation()] })],
  ['without a nonce', () => ({ operations: [accountOperation({ value: null }), webAuthDomain(host)] })],
  ['that only pays', () => ({ operations: [payment()] })],
  ['with a memo', () => ({ memo: Memo.id('7') })],
  ['that has expired', () => ({ bounds: { minTime: NOW_SECONDS - 1_000, maxTime: NOW_SECONDS - 700 } })],
  ['that never expires', () => ({ bounds: { minTime: 0, maxTime: 0 } })],
  ['for another network', () => ({ passphrase: 'Test SDF Network ; September 2015' })],
  ['that is none', () => 'AAAA'],
])('refuses a challenge %s', async (_, change) => {
  const changed = change()
  served.challenge = typeof changed === 'string' ? changed : ofService(changed)
  expect(await refusal()).toMatchObject(invalid(''))
})

const clientDomain = (): xdr.Operation =>
  Operation.manageData({ source: pair('client').publicKey(), name: 'client_domain', value: 'client.example' })

test.each<[string, () => Partial<typeof served>]>([
  ['cannot be read', () => ({ toml: undefined })],
  ['cannot be read', () => ({ redirect: `${service.url}/elsewhere` })],
  ['cannot be read', () => ({ toml: 'SIGNING_KEY =' })],
  ['names no SIGNING_KEY', () => ({ toml: 'VERSION = "2.7.0"' })],
  ['names no SIGNING_KEY', () => ({ toml: 'SIGNING_KEY = "GABC"' })],
])('refuses to sign if the stellar.toml %s', async (reason, change) => {
  Object.assign(served, change())
  expect(await refusal()).toMatchObject(invalid(`${service.url}/.well-known/stellar.toml ${reason}`))
})
