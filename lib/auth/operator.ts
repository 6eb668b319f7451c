import { randomUUID } from 'node:crypto'
import { jwtVerify, SignJWT } from 'jose'
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

/** Signs the cookie of a session. */
export function mintOperatorSession(settings: OperatorSettings, now: Date): Promise<string> {
  return mint(settings, SESSION, randomUUID(), OPERATOR_SESSION_SECONDS, now)
}

export async function isOperatorSession(
  settings: OperatorSettings,
  token: string | undefined,
  now: Date,
): Promise<boolean> {
  return (await read(settings, SESSION, token, now)) !== undefined
}

/** Signs the cookie that recognises a browser after a sign-in. It contains an id and is not a session. */
export function mintBrowser(settings: OperatorSettings, id: string, now: Date): Promise<string> {
  return mint(settings, BROWSER, id, BROWSER_SECONDS, now)
}

/** Returns the browser's id, or undefined if the cookie is invalid. */
export function readBrowser(
  settings: OperatorSettings,
  token: string | undefined,
  now: Date,
): Promise<string | undefined> {
  return read(settings, BROWSER, token, now)
}

function mint({ key }: OperatorSettings, typ: string, id: string, seconds: number, now: Date): Promise<string> {
  const issuedAt = Math.floor(now.getTime() / 1000)
  return new SignJWT()
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
): Promise<string | undefined> {
  if (!token || token.length > 1024) return undefined
  const options = { algorithms: ['HS256'], typ, requiredClaims: ['jti', 'iat', 'exp'], currentDate: now }
  const verified = await jwtVerify(token, key, options).catch(() => undefined)
  return verified?.payload.jti
}
