import { randomUUID } from 'node:crypto'
import { StrKey } from '@stellar/stellar-sdk'
import { errors, type JWTPayload, jwtVerify, SignJWT } from 'jose'
import { z } from 'zod'
import { IDENTITY_KINDS } from '#drizzle/schema/directory.ts'
import { Refusal } from '#lib/refusal/refusal.ts'

/** `secret` has at least 32 bytes; `ttl` is in seconds. */
export interface SessionSettings {
  secret: string
  issuer: string
  audience: string
  ttl: number
}

/** A ledger account, or a user of the identity provider `issuer`. */
export type Identity =
  | { kind: 'ledger'; sub: string }
  /** `email`: null if the provider says that it is not verified, undefined if it says nothing */
  | { kind: 'idp'; sub: string; issuer: string; email?: string | null | undefined }

/** A verified session. The user is (kind, sub): an idp sub that looks like a G-address is not a ledger user. */
export type Session = Identity & { id: string; expiresAt: Date }

/** The response of a sign-in. */
export const sessionShape = z.object({
  session: z.string().meta({ description: 'an HS256 JWT: send it as `Authorization: Bearer <session>`' }),
  kind: z.enum(IDENTITY_KINDS).meta({ description: '`ledger` after a sign-in by wallet, `idp` after one by email' }),
  sub: z.string().meta({ description: 'the account address (`ledger`), or the provider’s id of the user (`idp`)' }),
})
export type SignedIn = z.output<typeof sessionShape>

/** Distinguishes a session from any other token signed with the same secret (RFC 8725 §3.11). */
const TYPE = 'session+jwt'
const ALGORITHM = 'HS256'

/** In characters. A longer token is refused before it is verified. */
export const MAX_TOKEN_LENGTH = 8192

/** Caches verified sessions by token: a polling client sends the same token every second. Evicts the oldest first. */
const sessionCache = new WeakMap<SessionSettings, Map<string, Session>>()
const MAX_CACHED_SESSIONS = 5_000

/**
 * Signs a session token: an HS256 JWT with iss, aud, sub, kind, jti, iat and exp. It expires `ttl` seconds after `now`, or
 * at `notAfter` if that is earlier. `id` is the jti; by default it is random.
 */
export async function mintSession(
  settings: SessionSettings,
  identity: Identity & { id?: string; notAfter?: Date },
  now: Date,
): Promise<string> {
  const issuedAt = seconds(now)
  const end = issuedAt + settings.ttl
  const claims: JWTPayload = { kind: identity.kind }
  if (identity.kind === 'idp') {
    claims.idp = identity.issuer
    if (identity.email !== undefined) claims.email = identity.email
  }
  return await new SignJWT(claims)
    .setProtectedHeader({ alg: ALGORITHM, typ: TYPE })
    .setIssuer(settings.issuer)
    .setAudience(settings.audience)
    .setSubject(identity.sub)
    .setJti(identity.id ?? randomUUID())
    .setIssuedAt(issuedAt)
    .setExpirationTime(identity.notAfter ? Math.min(end, seconds(identity.notAfter)) : end)
    .sign(await keyOf(settings))
}

/**
 * Verifies a session token with pinned algorithm, type, issuer, audience and required claims.
 * @throws Refusal `session-expired` or, for anything else, `bearer-invalid`
 */
export async function verifySession(settings: SessionSettings, token: string, now: Date): Promise<Session> {
  if (token.length > MAX_TOKEN_LENGTH) throw invalid()
  const cache = sessionCache.get(settings) ?? new Map<string, Session>()
  const cached = cache.get(token)
  if (cached && now < cached.expiresAt) return cached
  const { payload } = await jwtVerify(token, await keyOf(settings), {
    algorithms: [ALGORITHM],
    typ: TYPE,
    issuer: settings.issuer,
    audience: settings.audience,
    requiredClaims: ['sub', 'kind', 'jti', 'iat', 'exp'],
    currentDate: now,
  }).catch((cause: unknown) => {
    if (cause instanceof errors.JWTExpired) throw new Refusal('session-expired')
    throw invalid(cause)
  })
  const session = sessionOf(payload)
  sessionCache.set(settings, cache.set(token, session))
  const [oldest] = cache.size > MAX_CACHED_SESSIONS ? cache.keys() : []
  if (oldest !== undefined) cache.delete(oldest)
  return session
}

/** The signature proves that this service wrote the claims. This checks that the current version also would. */
function sessionOf({ sub, kind, jti, exp, idp, email }: JWTPayload): Session {
  if (typeof sub !== 'string' || sub === '' || typeof jti !== 'string' || exp === undefined) throw invalid()
  const shared = { sub, id: jti, expiresAt: new Date(exp * 1000) }
  if (kind === 'ledger' && StrKey.isValidEd25519PublicKey(sub)) return { kind, ...shared }
  if (kind === 'idp' && typeof idp === 'string') {
    return { kind, ...shared, issuer: idp, ...((typeof email === 'string' || email === null) && { email }) }
  }
  throw invalid()
}

/** Imported secrets: jose would otherwise import the bytes for every token. */
const keys = new Map<string, Promise<CryptoKey>>()

function keyOf({ secret }: SessionSettings): Promise<CryptoKey> {
  const imported = keys.get(secret)
  if (imported) return imported
  const bytes = new TextEncoder().encode(secret)
  // jose accepts a secret of one byte. A short one can be guessed offline from any token (RFC 7518 §3.2).
  if (bytes.length < 32) throw new RangeError('the session secret has fewer than 32 bytes')
  const key = crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign', 'verify'])
  keys.set(secret, key)
  return key
}

function seconds(date: Date): number {
  return Math.floor(date.getTime() / 1000)
}

function invalid(cause?: unknown): Refusal {
  return new Refusal('bearer-invalid', undefined, cause === undefined ? {} : { cause })
}
