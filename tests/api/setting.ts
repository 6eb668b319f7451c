import { type Keypair, Transaction } from '@stellar/stellar-sdk'
import { readEnvironment } from '#lib/config/environment.ts'
import { generateRelayKey, publicHalf } from '#lib/config/relay-key.ts'
import { devnetKeys } from '#lib/devnet/devnet.ts'
import { provideService } from '#lib/server/services.ts'
import { startService } from '#lib/server/start.ts'
import { providerKey, startTestProvider, type TestProvider } from '../auth/provider-server.ts'
import { openTown, type Town } from '../support/town.ts'
import { openVisitor, type Sent, type Visitor } from './visitor.ts'

export const TOKENS = { METRICS_TOKEN: 'a token for metrics', CRON_SECRET: 'a secret for cron' }

/** A town where everything is configured, with an identity provider, and a visitor who holds it to the document. */
export interface Setting {
  town: Town
  provider: TestProvider
  visitor: Visitor
  statusOf(method: string, path: string, sent?: Sent): Promise<number>
  /** a token of the provider's, for somebody of this name */
  providerToken(sub: string, email?: string, issuer?: string): Promise<string>
  /** somebody of the provider's, signed in */
  signIn(sub: string, email?: string): Promise<{ session: string }>
  /** a challenge for a wallet, signed by it */
  challengeOf(account: Keypair, path?: string): Promise<string>
  /** a contractor of an employer's: its id */
  hire(employer: { session: string }, fields?: object): Promise<string>
  /** a service with other settings, for as long as `visit` takes */
  elsewhere(variables: Record<string, string>, visit: () => Promise<void>): Promise<void>
  /** nobody reaches the ledger, for as long as `visit` takes */
  withoutLedger(visit: () => Promise<void>): Promise<void>
  close(): Promise<void>
}

/** Somebody's token, and what they send. */
export const as = (person: { session: string }, body?: unknown): Sent => ({ token: person.session, body })

export async function openSetting(): Promise<Setting> {
  const provider = await startTestProvider()
  const key = await providerKey('k1')
  const { origin, documents } = provider
  documents.set('/.well-known/openid-configuration', { body: { issuer: origin, jwks_uri: `${origin}/jwks` } })
  documents.set('/jwks', { body: { keys: [key.jwk] } })
  const town = await openTown({
    ...TOKENS,
    FAUCET_SEED: devnetKeys('Standalone Network ; February 2017').issuer.secret(),
    BATCH_ENABLED: 'true',
    RELAY_PUBLIC_KEY: JSON.stringify(publicHalf(generateRelayKey())),
    IDP_ISSUER: origin,
    IDP_AUDIENCE: 'payroll',
    TRANSFER_WAIT: '2',
  })
  const visitor = await openVisitor()
  const { ask } = visitor
  const providerToken = async (sub: string, email?: string, iss = origin) => {
    const now = Math.floor(Date.now() / 1000)
    const claims = { iss, aud: 'payroll', sub, iat: now, exp: now + 600 }
    return await key.sign({ ...claims, ...(email !== undefined && { email, email_verified: true }) })
  }
  return {
    town,
    provider,
    visitor,
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
    elsewhere: async (variables, visit) => {
      const database = 'DATABASE_URL' in variables ? undefined : town.shared
      const other = await startService(readEnvironment({ ...town.variables, ...variables }), database)
      provideService(Promise.resolve(other))
      try {
        await visit()
      } finally {
        provideService(Promise.resolve(town.service))
        await other.close()
      }
    },
    withoutLedger: async (visit) => {
      town.proxy.rule(() => ({ drop: true, delivered: false }))
      try {
        await visit()
      } finally {
        town.proxy.rule(null)
      }
    },
    close: async () => {
      await town.close()
      await provider.close()
    },
  }
}
