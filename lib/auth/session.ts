import { randomUUID } from 'node:crypto'
import { StrKey } from '@stellar/stellar-sdk'
import { errors, type JWTPayload, jwtVerify, SignJWT } from 'jose'
import { z } from 'zod'
import { IDENTITY_KINDS } from '#drizzle/schema/directory.ts'
import { Refusal } from '#lib/refusal/refusal.ts'

/** How sessions are signed. `secret` has at least 32 bytes, `ttl` is in seconds. */
export interface SessionSettings {
  secret: string
  issuer: string
  audience: string
  ttl: number
}

/** The user of a session: an account of the ledger, or a user of an identity provider (`issuer` is the provider). */
export type Identity =
  | { kind: 'ledger'; sub: string }
  | { kind: 'idp'; sub: string; issuer: string; email?: string | undefined }

/** A verified session. The user is (kind, sub): an idp sub in the form of a G-address is still no ledger user. */
export type Session = Identity & { id: string; expiresAt: Date }

/** The answer of a sign-in. */
export const sessionShape = z.object({
  session: z.string().meta({ description: 'an HS256 JWT: send it as `Authorization: Bearer <session>`' }),
  kind: z.enum(IDENTITY_KINDS).meta({ description: '`ledger` after a wallet sign-in, `idp` after one by email' }),
  sub: z.string().meta({ description: 'the account address (`ledger`), or the provider’s id of the user (`idp`)' }),
})
export type SignedIn = z.output<typeof sessionShape>

/** Keeps a session apart from any other token that the same secret might ever sign (RFC 8725 §3.11). */
const TYPE = 'session+jwt'
const ALGORITHM = 'HS256'

/** Characters; a longer token is refused before it is verified. */
export const LONGEST_TOKEN = 8192

/**
 * Verified sessions by token, since a client that polls sends the same token each second. The oldest are dropped
 * first.
 */
const verified = new WeakMap<SessionSettings, Map<string, Session>>()
const MOST_VERIFIED = 5_000

/**
 * A session token for `identity`: an HS256 JWT with iss, aud, sub, kind, jti, iat and exp. It ends `ttl` seconds from
 * `now`, or at `notAfter` if that is sooner. `id` becomes the jti, a random one without it.
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
 * The session that `token` is. Algorithm, type, issuer, audience and the claims that must be there are all pinned.
 * @throws Refusal `session-expired` or, for all else, `bearer-invalid`
 */
export async function verifySession(settings: SessionSettings, token: string, now: Date): Promise<Session> {
  if (token.length > LONGEST_TOKEN) throw invalid()
  const known = verified.get(settings) ?? new Map<string, Session>()
  const session = known.get(token)
  if (session && now < session.expiresAt) return session
  const { payload } = await jwtVerify(token, await keyOf(settings), {
    algorithms: [ALGORITHM],
    typ: TYPE,
    issuer: settings.issuer,
    audience: settings.audience,
    requiredClaims: ['sub', 'kind', 'jti', 'iat', 'exp'],
    currentDate: now,
  }).catch((cause: unknown) => {
    if (cause instanceof errors.JWTExpired) throw new Refusal('session-expired', 'session expired')
    throw invalid(cause)
  })
  const read = sessionOf(payload)
  verified.set(settings, known.set(token, read))
  const [oldest] = known.size > MOST_VERIFIED ? known.keys() : []
  if (oldest !== undefined) known.delete(oldest)
  return read
}

/** The signature proves that this service wrote the claims. This checks that today's version would write them so. */
function sessionOf({ sub, kind, jti, exp, idp, email }: JWTPayload): Session {
  if (typeof sub !== 'string' || sub === '' || typeof jti !== 'string' || exp === undefined) throw invalid()
  const shared = { sub, id: jti, expiresAt: new Date(exp * 1000) }
  if (kind === 'ledger' && StrKey.isValidEd25519PublicKey(sub)) return { kind, ...shared }
  if (kind === 'idp' && typeof idp === 'string') {
    return { kind, ...shared, issuer: idp, ...(typeof email === 'string' && { email }) }
  }
  throw invalid()
}

/** Secrets that are imported already: jose would import the bytes anew for every token. */
const keys = new Map<string, Promise<CryptoKey>>()

function keyOf({ secret }: SessionSettings): Promise<CryptoKey> {
  const known = keys.get(secret)
  if (known) return known
  const bytes = new TextEncoder().encode(secret)
  // jose takes a secret of one byte; a short one can be guessed offline from any token (RFC 7518 §3.2).
  if (bytes.length < 32) throw new RangeError('the session secret has fewer than 32 bytes')
  const key = crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign', 'verify'])
  keys.set(secret, key)
  return key
}

function seconds(date: Date): number {
  return Math.floor(date.getTime() / 1000)
}

function invalid(cause?: unknown): Refusal {
  return new Refusal('bearer-invalid', 'invalid session token', cause === undefined ? {} : { cause })
}
