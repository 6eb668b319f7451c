import { type Keypair, Transaction } from '@stellar/stellar-sdk'
import { generateRelayKey, publicHalf } from '#lib/config/relay-key.ts'
import { devnetKeys } from '#lib/devnet/devnet.ts'
import { providerKey, startTestProvider, type TestProvider } from '../auth/provider-server.ts'
import type { Method, Sent } from '../support/api-client.ts'
import { openTestService, type TestService } from '../support/test-service.ts'

export const TOKENS = { METRICS_TOKEN: 'a token for metrics', CRON_SECRET: 'a secret for cron' }

/** A service with an identity provider and every feature configured. */
export interface FullService extends TestService<'embedded'> {
  provider: TestProvider
  statusOf(method: Method, path: string, sent?: Sent): Promise<number>
  /** a provider token for the user of this name */
  providerToken(sub: string, email?: string, issuer?: string): Promise<string>
  /** the user of this name at the provider, signed in */
  signIn(sub: string, email?: string): Promise<{ session: string }>
  /** a challenge for a wallet, signed by it */
  challengeOf(account: Keypair, path?: string): Promise<string>
  /** adds a contractor to the employer, and resolves to its id */
  hire(employer: { session: string }, fields?: object): Promise<string>
  /** Makes the ledger unreachable while `work` runs. */
  withoutLedger(work: () => Promise<void>): Promise<void>
}

/** A user's session and request data. */
export const as = ({ session }: { session: string }, body?: unknown): Sent => ({ session, body })

export async function openFullService(): Promise<FullService> {
  const provider = await startTestProvider()
  const key = await providerKey('k1')
  const { origin, documents } = provider
  documents.set('/.well-known/openid-configuration', { body: { issuer: origin, jwks_uri: `${origin}/jwks` } })
  documents.set('/jwks', { body: { keys: [key.jwk] } })
  const service = await openTestService({
    ledger: 'embedded',
    variables: {
      ...TOKENS,
      FAUCET_SEED: devnetKeys('Standalone Network ; February 2017').issuer.secret(),
      BATCH_ENABLED: 'true',
      RELAY_PUBLIC_KEY: JSON.stringify(publicHalf(generateRelayKey())),
      IDP_ISSUER: origin,
      IDP_AUDIENCE: 'payroll',
    },
  })
  const { ask, ledger } = service
  const providerToken = async (sub: string, email?: string, iss = origin) => {
    const now = Math.floor(Date.now() / 1000)
    const claims = { iss, aud: 'payroll', sub, iat: now, exp: now + 600 }
    return await key.sign({ ...claims, ...(email !== undefined && { email, email_verified: true }) })
  }
  return {
    ...service,
    provider,
    providerToken,
    statusOf: async (method, path, sent) => (await ask(method, path, sent)).status,
    signIn: async (sub, email) => {
      const { body } = await ask('POST', '/auth/idp', { body: { token: await providerToken(sub, email) } })
      return { session: String(body.session) }
    },
    challengeOf: async (account, path = '/auth/sep10/challenge') => {
      const { body } = await ask('GET', `${path}?account=${account.publicKey()}`)
      const challenge = new Transaction(String(body.transaction), String(body.network_passphrase))
      challenge.sign(account)
      return challenge.toXdr()
    },
    hire: async (employer, fields = { name: 'Grace' }) =>
      String((await ask('POST', '/contractors', as(employer, fields))).body.id),
    withoutLedger: async (work) => {
      ledger.proxy.rule(() => ({ drop: true, delivered: false }))
      await work().finally(() => ledger.proxy.rule(null))
    },
    close: async () => {
      await service.close()
      await provider.close()
    },
  }
}
