import { randomUUID } from 'node:crypto'
import { type JWTPayload, jwtVerify, SignJWT } from 'jose'
import { deriveKey, isSameSecret } from './shared-secret.ts'

export interface OperatorSettings {
  password: string
  /** whether the service derived the password, and has to print it */
  isDerived: boolean
  /** signs the operator's cookies; derived from the secret and the password, so that a new password ends all sessions */
  key: Uint8Array
}

export const OPERATOR_SESSION_SECONDS = 12 * 3600
export const BROWSER_SECONDS = 180 * 86_400

/**
 * Uses the given password, else one derived from `embeddedSecret`. Returns undefined without either: the dashboard is
 * then closed. Pure.
 * @param secret the secret that signs sessions
 * @param embeddedSecret the secret that the embedded default generates on its first start
 */
export function composeOperator(
  secret: string,
  { password, embeddedSecret }: { password: string | undefined; embeddedSecret: string | undefined },
): OperatorSettings | undefined {
  const effective = password ?? (embeddedSecret && derivePassword(embeddedSecret))
  if (!effective) return undefined
  return {
    password: effective,
    isDerived: password === undefined,
    key: deriveKey(secret, 'operator cookies', effective),
  }
}

/** Crockford's base 32, without easily confused letters. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'

/** Four groups of four characters: 80 bits. */
function derivePassword(secret: string): string {
  const letters = [...deriveKey(secret, 'operator password')].slice(0, 16).map((byte) => ALPHABET[byte % 32])
  return letters.join('').replace(/(.{4})(?=.)/g, '$1-')
}

export function isPassword({ password }: OperatorSettings, tried: string): boolean {
  return isSameSecret(password, tried)
}

const SESSION = 'operator-session+jwt'
const BROWSER = 'operator-browser+jwt'

/** Signs a session cookie that contains the name the operator gave. */
export function mintOperatorSession(settings: OperatorSettings, name: string, now: Date): Promise<string> {
  return mint(settings, { typ: SESSION, id: randomUUID(), seconds: OPERATOR_SESSION_SECONDS, claims: { name } }, now)
}

/** Returns the operator's name, or undefined if the cookie is invalid. */
export async function readOperatorSession(
  settings: OperatorSettings,
  token: string | undefined,
  now: Date,
): Promise<string | undefined> {
  const claims = await read(settings, SESSION, token, now)
  return typeof claims?.name === 'string' ? claims.name : undefined
}

/** Signs the cookie that recognises a browser after a sign-in. It contains an id and is not a session. */
export function mintBrowser(settings: OperatorSettings, id: string, now: Date): Promise<string> {
  return mint(settings, { typ: BROWSER, id, seconds: BROWSER_SECONDS, claims: {} }, now)
}

/** Returns the browser's id, or undefined if the cookie is invalid. */
export async function readBrowser(
  settings: OperatorSettings,
  token: string | undefined,
  now: Date,
): Promise<string | undefined> {
  return (await read(settings, BROWSER, token, now))?.jti
}

function mint(
  { key }: OperatorSettings,
  { typ, id, seconds, claims }: { typ: string; id: string; seconds: number; claims: JWTPayload },
  now: Date,
): Promise<string> {
  const issuedAt = Math.floor(now.getTime() / 1000)
  return new SignJWT(claims)
    .setProtectedHeader({ alg: 'HS256', typ })
    .setJti(id)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + seconds)
    .sign(key)
}

async function read(
  { key }: OperatorSettings,
  typ: string,
  token: string | undefined,
  now: Date,
): Promise<JWTPayload | undefined> {
  if (!token || token.length > 1024) return undefined
  const options = { algorithms: ['HS256'], typ, requiredClaims: ['jti', 'iat', 'exp'], currentDate: now }
  const verified = await jwtVerify(token, key, options).catch(() => undefined)
  return verified?.payload
}
