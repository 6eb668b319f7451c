import { Keypair, Networks, StellarToml, TransactionBuilder } from '@stellar/stellar-sdk'
import { SigningKeypair, Wallet } from '@stellar/typescript-wallet-sdk'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { verifySession } from '#lib/auth/session.ts'
import { openApi } from '../support/api.ts'
import { listen } from '../support/listen.ts'
import { freePort } from '../support/port.ts'
import { openTestService, type TestService } from '../support/test-service.ts'

let service: TestService
let server: Awaited<ReturnType<typeof listen>>
let base: string

/** The wallet SDK takes a home domain without a port, so axios reaches the service as this domain's proxy. */
const domain = 'payroll.test'

beforeAll(async () => {
  const port = await freePort()
  base = `http://127.0.0.1:${port}`
  process.env.http_proxy = base
  // The wallet SDK allows plain HTTP on this network only.
  const variables = { PUBLIC_URL: `http://${domain}`, DEVNET_PASSPHRASE: Networks.TESTNET }
  service = await openTestService({ ledger: 'fake', variables })
  server = await listen(port, await openApi())
})
afterAll(async () => {
  delete process.env.http_proxy
  await server?.close()
  await service?.close()
})

async function signedChallenge(wallet: Keypair): Promise<string> {
  const answer = await fetch(`${base}/api/auth/sep10?account=${wallet.publicKey()}`)
  const challenge = (await answer.json()) as { transaction: string; network_passphrase: string }
  expect(Object.keys(challenge).sort()).toEqual(['network_passphrase', 'transaction'])
  const transaction = TransactionBuilder.fromXdr(challenge.transaction, challenge.network_passphrase)
  transaction.sign(wallet)
  return transaction.toXdr()
}

test('lets the SDF’s wallet SDK sign in through stellar.toml', async () => {
  const anchor = Wallet.TestNet().anchor({ homeDomain: domain, allowHttp: true })
  const auth = await anchor.sep10()
  const wallet = Keypair.random()
  const { token } = await auth.authenticate({ accountKp: SigningKeypair.fromSecret(wallet.secret()) })
  const session = await verifySession(service.running.settings.sessions, token, new Date())
  expect(session).toMatchObject({ kind: 'ledger', sub: wallet.publicKey() })
})

test('serves a stellar.toml that the SDK reads as SEP-1 requires', async () => {
  const response = await fetch(`${base}/.well-known/stellar.toml`)
  expect(response.headers.get('content-type')).toMatch(/^text\/plain/)
  expect(response.headers.get('access-control-allow-origin')).toBe('*')
  const toml = await StellarToml.Resolver.resolve(new URL(base).host, { allowHttp: true })
  expect(toml).toEqual({
    VERSION: '2.7.0',
    NETWORK_PASSPHRASE: Networks.TESTNET,
    SIGNING_KEY: service.running.settings.sep10.signer.publicKey(),
    WEB_AUTH_ENDPOINT: `http://${domain}/api/auth/sep10`,
    CURRENCIES: [],
    DOCUMENTATION: { ORG_NAME: 'Confidential payroll', ORG_URL: `http://${domain}` },
  })
})

test.each([
  'application/json',
  'application/x-www-form-urlencoded',
  'application/x-www-form-urlencoded; charset=utf-8',
])('returns a token for a body of type %s', async (type) => {
  const wallet = Keypair.random()
  const transaction = await signedChallenge(wallet)
  const body = type === 'application/json' ? JSON.stringify({ transaction }) : new URLSearchParams({ transaction })
  const headers = { 'Content-Type': type }
  const response = await fetch(`${base}/api/auth/sep10`, { method: 'POST', headers, body: String(body) })
  const answer = (await response.json()) as { token: string }
  expect(response.status).toBe(200)
  expect(answer).toMatchObject({ session: answer.token, kind: 'ledger', sub: wallet.publicKey() })
})

test.each([
  ['/api/auth/sep10', 'the body must be application/json or application/x-www-form-urlencoded'],
  ['/api/auth/sep10/verify', 'the body must be application/json'],
])('lists the accepted content types of %s when another one is sent', async (path, error) => {
  const headers = { 'Content-Type': 'multipart/form-data; boundary=x' }
  const response = await fetch(base + path, { method: 'POST', headers, body: '--x--' })
  expect([response.status, await response.json()]).toEqual([415, { error, code: 'unsupported-media' }])
})

test.each([
  ['no body', undefined, undefined],
  ['an empty form', 'application/x-www-form-urlencoded', ''],
  ['a form without the field', 'application/x-www-form-urlencoded', 'token=1'],
  ['a form that is not UTF-8', 'application/x-www-form-urlencoded', Buffer.from([0x74, 0xff, 0xfe])],
  ['an object instead of a string', 'application/json', '{"transaction":{}}'],
])('responds 400 with an error to %s', async (_, type, body) => {
  const response = await fetch(`${base}/api/auth/sep10`, {
    method: 'POST',
    headers: type ? { 'Content-Type': type } : {},
    ...(body !== undefined && { body }),
  })
  expect(response.status).toBe(400)
  expect(await response.json()).toEqual({ error: expect.any(String), code: expect.any(String) })
})
