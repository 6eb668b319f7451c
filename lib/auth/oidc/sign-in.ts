import { errors, type JWTVerifyGetKey, type JWTVerifyOptions, jwtVerify } from 'jose'
import { z } from 'zod'
import { describeFailure, log } from '#lib/observability/log.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { isEmail } from '#lib/text/email.ts'
import { bodyWith } from '#lib/text/plain-text.ts'
import { type Identity, MAX_TOKEN_LENGTH, mintSession, type SessionSettings, type SignedIn } from '../session.ts'
import { openProvider, type ProviderSettings } from './provider.ts'
import { fetchCapped } from './provider-request.ts'

/** The body of POST /auth/idp. */
export const providerToken = bodyWith('token', 'an access token of the identity provider')

/** The `typ` headers of access tokens (RFC 9068 §2.1). The same keys sign logout tokens, which have another type. */
const ACCESS_TOKEN_TYPES: ReadonlySet<string | undefined> = new Set([undefined, 'jwt', 'at+jwt', 'application/at+jwt'])

/** How far (s) the provider's clock may be ahead. An expired token starts no session all the same. */
const CLOCK_TOLERANCE = 30

/**
 * @throws Refusal `idp-not-configured`
 */
export function requireProvider(provider: ProviderSettings | undefined): ProviderSettings {
  if (!provider) throw new Refusal('idp-not-configured')
  return provider
}

/**
 * Exchanges an access token of the provider for a session that expires no later than the token.
 * @throws Refusal `identity-token-invalid`; `unavailable` while the provider cannot be reached
 */
export async function signInWithProvider(
  context: { provider: ProviderSettings; sessions: SessionSettings },
  token: string,
  now: Date,
): Promise<SignedIn> {
  const { identity, expiresAt } = await verifyAccessToken(context.provider, token, now)
  const session = await mintSession(context.sessions, { ...identity, notAfter: expiresAt }, now)
  return { session, kind: identity.kind, sub: identity.sub }
}

/**
 * Verifies an access token with the provider's keys, issuer, audience and algorithms, and then reads the user from it.
 * The identity is (issuer, sub), never the email address, which can change hands.
 */
export async function verifyAccessToken(
  provider: ProviderSettings,
  token: string,
  now: Date,
): Promise<{ identity: Identity & { kind: 'idp' }; expiresAt: Date }> {
  if (token.length > MAX_TOKEN_LENGTH) throw invalid()
  const { keys, userinfo } = await openProvider(provider)
  const { payload, protectedHeader } = await verifyWithAny(token, keys, {
    issuer: provider.issuer,
    audience: provider.audience,
    algorithms: [...provider.algorithms],
    requiredClaims: ['sub', 'iat', 'exp'],
    currentDate: now,
    clockTolerance: CLOCK_TOLERANCE,
  }).catch((cause: unknown) => {
    throw cause instanceof Refusal ? cause : invalid(cause)
  })
  const { sub, exp } = payload
  // Media types have no case (RFC 2045 §5.1).
  if (!ACCESS_TOKEN_TYPES.has(protectedHeader.typ?.toLowerCase())) throw invalid()
  // Privy's identity tokens have the issuer and audience of its access tokens. Only identity tokens have this claim.
  if (payload.linked_accounts !== undefined) throw invalid()
  if (!isSubject(sub) || exp === undefined) throw invalid()
  const expiresAt = new Date(exp * 1000)
  if (expiresAt.getTime() <= now.getTime()) throw invalid()
  // Without an email claim in the token, the userinfo endpoint may return the email.
  const claims =
    payload[provider.emailClaim] === undefined && userinfo ? await askUserinfo(userinfo, token, sub) : payload
  return { identity: { kind: 'idp', sub, issuer: provider.issuer, ...verifiedEmail(provider, claims) }, expiresAt }
}

/** Verifies a token with each of the keys that may be meant: a provider may list keys without a `kid`, or one twice. */
async function verifyWithAny(token: string, keys: JWTVerifyGetKey, options: JWTVerifyOptions) {
  const several = await jwtVerify(token, keys, options).catch((error: unknown) => {
    if (error instanceof errors.JWKSMultipleMatchingKeys) return error
    throw error
  })
  if (!(several instanceof errors.JWKSMultipleMatchingKeys)) return several
  for await (const key of several) {
    const verified = await jwtVerify(token, key, options).catch((error: unknown) => {
      if (!(error instanceof errors.JWSSignatureVerificationFailed)) throw error
    })
    if (verified) return verified
  }
  throw new errors.JWSSignatureVerificationFailed()
}

const CLAIMS = z.record(z.string(), z.unknown())

/**
 * Requests the claims of an access token from the userinfo endpoint (OpenID Connect Core 1.0 §5.3). Returns no claims
 * if the request fails or the response is for a user other than `sub`, which must not be used (§5.3.2): signing in does
 * not need an email.
 */
async function askUserinfo(endpoint: URL, token: string, sub: string): Promise<Record<string, unknown>> {
  try {
    const response = await fetchCapped(endpoint.href, { authorization: `Bearer ${token}` })
    if (response.status !== 200) throw new Error(`userinfo responded with ${response.status}`)
    const claims = CLAIMS.parse(await response.json())
    if (claims.sub !== sub) throw new Error('userinfo is for another user')
    return claims
  } catch (error) {
    log('info', 'userinfo', { failure: describeFailure(error) })
    return {}
  }
}

/**
 * Returns the email among `claims` if the provider has verified it: `<claim>_verified`, or `email_verified` for a custom
 * claim without such a sibling, is `true` and not the string. Null if it has not, nothing if the claims have no email.
 */
function verifiedEmail(
  { emailClaim }: Pick<ProviderSettings, 'emailClaim'>,
  claims: Record<string, unknown>,
): { email?: string | null } {
  const email = claims[emailClaim]
  if (email === undefined) return {}
  const verified = claims[`${emailClaim}_verified`] ?? claims.email_verified
  return { email: verified === true && typeof email === 'string' && isEmail(email) ? email : null }
}

/** OpenID Connect Core §2: at most 255 ASCII characters. */
function isSubject(sub: unknown): sub is string {
  return typeof sub === 'string' && /^[\x20-\x7e]{1,255}$/.test(sub)
}

function invalid(cause?: unknown): Refusal {
  return new Refusal('identity-token-invalid', undefined, cause === undefined ? {} : { cause })
}
