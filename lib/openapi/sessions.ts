import { z } from 'zod'
import { IDENTITY_KINDS } from '#drizzle/schema/directory.ts'
import { providerToken } from '#lib/auth/oidc/sign-in.ts'
import { challengeQuery } from '#lib/auth/sep10/challenge.ts'
import { signedChallenge } from '#lib/auth/sep10/sign-in.ts'
import { EXAMPLE, OTHER_PROVIDER } from './examples.ts'
import type { Operation } from './operation.ts'

export const sessionShape = z.object({
  session: z.string().meta({ description: 'an HS256 JWT: send it as `Authorization: Bearer <session>`' }),
  kind: z.enum(IDENTITY_KINDS).meta({ description: '`ledger` after a wallet sign-in, `idp` after one by email' }),
  sub: z.string().meta({ description: 'the account address (`ledger`), or the provider’s id of the user (`idp`)' }),
})

export const challengeShape = z.object({
  transaction: z.string().meta({ description: 'what the wallet is to sign: a transaction envelope, base64 XDR' }),
  network_passphrase: z.string().meta({ description: 'the network that the signature is for' }),
})

const CHALLENGE = 'AAAAAgAAAADg3G3hclysZlFitS+s5zWyiiJD5B0STWy5LXCj6i5yxQAAAGQ…'

/** What both ways to a challenge have in common: the two routes of the specification, and the one URL of SEP-10. */
const challenge = {
  method: 'get',
  group: 'Sessions',
  caller: 'anybody',
  summary: 'Get a challenge for a wallet to sign',
  query: {
    schema: challengeQuery.required({ account: true }),
    parsedBy: challengeQuery,
    example: { account: EXAMPLE.employer, memo: '', home_domain: 'localhost:3000' },
    messages: [
      'account required',
      'account must be an account address (G…); muxed and contract accounts cannot sign in',
      "account is the server's own signing key",
      'memo is not supported',
      'home_domain is not served here; it is {home domain}',
    ],
  },
  answer: {
    description: 'The challenge',
    schema: challengeShape,
    example: { transaction: CHALLENGE, network_passphrase: 'Test SDF Network ; September 2015' },
  },
  selfContained: true,
} satisfies Partial<Operation>

const signIn = {
  method: 'post',
  group: 'Sessions',
  caller: 'anybody',
  summary: 'Exchange a signed challenge for a session',
  body: {
    schema: signedChallenge,
    example: { transaction: CHALLENGE },
    messages: [
      'invalid challenge: it has expired',
      'invalid challenge: it has been used already',
      'invalid challenge: it is not signed by the account',
      'invalid challenge: it has a signature that is not of a signer of the account',
      'invalid challenge: {reason}',
    ],
  },
  answer: {
    description: 'A session of the account',
    schema: sessionShape,
    example: { session: EXAMPLE.session, kind: 'ledger', sub: EXAMPLE.employer },
  },
  refusals: { 503: ['the ledger cannot be reached'] },
} satisfies Partial<Operation>

export const SESSION_OPERATIONS: Operation[] = [
  {
    ...challenge,
    id: 'getChallenge',
    path: '/auth/sep10/challenge',
    description: 'SEP-10. The challenge is valid for 5 minutes and can be used once. Nothing is stored.',
  },
  {
    ...signIn,
    id: 'signInWithWallet',
    path: '/auth/sep10/verify',
    description: 'The first sign-in founds an organisation, unless somebody has invited the user.',
  },
  {
    ...challenge,
    id: 'getStandardChallenge',
    path: '/auth/sep10',
    extension: true,
    description: 'The same at the one URL that SEP-10 knows, as stellar.toml names it.',
  },
  {
    ...signIn,
    id: 'signInWithStandard',
    path: '/auth/sep10',
    extension: true,
    description: 'The same at the one URL that SEP-10 knows: JSON or a form, and the session is its `token` as well.',
    body: { ...signIn.body, form: true },
    answer: {
      ...signIn.answer,
      schema: sessionShape.extend({ token: z.string().meta({ description: 'the session, as SEP-10 names it' }) }),
      example: { token: EXAMPLE.session, ...signIn.answer.example },
    },
  },
  {
    id: 'signInWithProvider',
    method: 'post',
    path: '/auth/idp',
    group: 'Sessions',
    caller: 'anybody',
    summary: 'Exchange an access token of the identity provider for a session',
    description: 'The session never outlives the token.',
    body: { schema: providerToken, example: { token: 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl' } },
    answer: {
      description: 'A session of the provider’s user',
      schema: sessionShape,
      example: { session: EXAMPLE.session, kind: 'idp', sub: 'ada' },
    },
    refusals: {
      401: ['invalid identity token'],
      403: [OTHER_PROVIDER],
      501: ['no identity provider is configured'],
      503: ['the identity provider cannot be reached'],
    },
  },
]
