import { z } from 'zod'
import { providerToken, requireProvider, signInWithProvider } from '#lib/auth/oidc/sign-in.ts'
import { buildChallenge, challengeQuery, challengeShape } from '#lib/auth/sep10/challenge.ts'
import { signedChallenge, signInWithWallet } from '#lib/auth/sep10/sign-in.ts'
import { sessionShape } from '#lib/auth/session.ts'
import { admitSession } from '#lib/directory/users.ts'
import type { RefusalCode } from '#lib/refusal/refusal.ts'
import type { Service } from '#lib/server/services.ts'
import { EXAMPLE } from './examples.ts'
import { inGroup, operation } from './operation.ts'

const TRANSACTION = 'AAAAAgAAAADg3G3hclysZlFitS+s5zWyiiJD5B0STWy5LXCj6i5yxQAAAGQ…'
const LEDGER_SESSION = { session: EXAMPLE.session, kind: 'ledger', sub: EXAMPLE.employer } as const

/** Shared by both challenge routes: the specification's, and the single URL that SEP-10 requires. */
const challenge = {
  caller: 'anybody',
  summary: 'Get a challenge for a wallet to sign',
  query: {
    schema: challengeQuery,
    docsSchema: challengeQuery.required({ account: true }),
    example: { account: EXAMPLE.employer, memo: '', home_domain: '' },
  },
  response: {
    description: 'The challenge',
    schema: challengeShape,
    example: { transaction: TRANSACTION, network_passphrase: 'Test SDF Network ; September 2015' },
  },
  refusals: ['account-required', 'account-invalid', 'memo-invalid', 'home-domain-invalid', 'rate-limited'],
  selfContained: true,
} as const

const signIn = {
  caller: 'anybody',
  summary: 'Exchange a signed challenge for a session',
  refusals: ['challenge-invalid', 'challenge-expired', 'challenge-used', 'rate-limited'] satisfies RefusalCode[],
} as const

async function openWalletSession(service: Service, transaction: string, now: Date) {
  const { settings, network, database } = service
  const context = { rpc: network.server, sep10: settings.sep10, sessions: settings.sessions, database }
  return await admitSession(service, await signInWithWallet(context, transaction, now))
}

export const SESSION_OPERATIONS = inGroup('Sessions', [
  operation({
    ...challenge,
    id: 'getChallenge',
    route: 'GET /auth/sep10/challenge',
    description: 'SEP-10. The challenge is valid for 5 minutes and can be used once. Nothing is stored.',
    handle: async ({ service, query, now }) => buildChallenge(service.settings.sep10, query, now),
  }),
  operation({
    ...signIn,
    id: 'signInWithWallet',
    route: 'POST /auth/sep10/verify',
    description: 'GET /me tells what the user is: an employer, unless it is a contractor or has an invite.',
    body: { schema: signedChallenge, example: { transaction: TRANSACTION } },
    response: { description: 'A session of the account', schema: sessionShape, example: LEDGER_SESSION },
    handle: ({ service, body, now }) => openWalletSession(service, body.transaction, now),
  }),
  operation({
    ...challenge,
    id: 'getStandardChallenge',
    route: 'GET /auth/sep10',
    extension: true,
    readers: 'everybody',
    description: 'The challenge at the URL that stellar.toml names as SEP-10 requires. Any origin may request it.',
    handle: async ({ service, query, now }) => buildChallenge(service.settings.sep10, query, now),
  }),
  operation({
    ...signIn,
    id: 'signInWithStandard',
    route: 'POST /auth/sep10',
    extension: true,
    readers: 'everybody',
    description: 'Takes JSON or a form, as SEP-10 requires, and also returns the session as `token`.',
    body: { schema: signedChallenge, example: { transaction: TRANSACTION }, form: true },
    response: {
      description: 'A session of the account',
      schema: sessionShape.extend({ token: z.string().meta({ description: 'the session, under SEP-10’s name' }) }),
      example: { token: EXAMPLE.session, ...LEDGER_SESSION },
    },
    handle: async ({ service, body, now }) => {
      const opened = await openWalletSession(service, body.transaction, now)
      return { token: opened.session, ...opened }
    },
  }),
  operation({
    id: 'signInWithProvider',
    route: 'POST /auth/idp',
    caller: 'anybody',
    summary: 'Exchange an access token of the identity provider for a session',
    description: 'The session never outlives the token.',
    body: { schema: providerToken, example: { token: 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl' } },
    requires: ({ settings }) => requireProvider(settings.provider),
    response: {
      description: 'A session of the provider’s user',
      schema: sessionShape,
      example: { session: EXAMPLE.session, kind: 'idp', sub: 'ada' },
    },
    refusals: ['identity-token-invalid', 'provider-mismatch', 'idp-not-configured', 'rate-limited'],
    handle: async ({ service, ready, body, now }) => {
      const context = { provider: ready, sessions: service.settings.sessions }
      return await admitSession(service, await signInWithProvider(context, body.token, now))
    },
  }),
])
