import { randomUUID } from 'node:crypto'
import { jwtVerify, SignJWT } from 'jose'
import { deriveKey, isSameSecret } from './shared-secret.ts'

/** The settings of the dashboard's sign-in. */
export interface OperatorSettings {
  password: string
  /** whether the service made the password itself, so that the operator must be told it */
  isMade: boolean
  /** signs the operator's cookies; derived from the secret and the password, so that a new password ends all sessions */
  key: Uint8Array
}

/** How long a session lasts, and how long a browser is remembered, in seconds. */
export const OPERATOR_SESSION_SECONDS = 12 * 3600
export const BROWSER_SECONDS = 180 * 86_400

/**
 * The settings of the dashboard's sign-in: with the given password, else with one derived from `embeddedSecret`; undefined
 * without either, and then the dashboard is closed. Pure.
 * @param secret the secret that signs sessions
 * @param embeddedSecret the secret that the embedded default makes at its first start
 */
export function composeOperator(
  secret: string,
  { password, embeddedSecret }: { password: string | undefined; embeddedSecret: string | undefined },
): OperatorSettings | undefined {
  const opens = password ?? (embeddedSecret && makePassword(embeddedSecret))
  if (!opens) return undefined
  return { password: opens, isMade: password === undefined, key: deriveKey(secret, 'operator cookies', opens) }
}

/** Crockford's base 32, which leaves out the letters that are easily confused when they are read aloud or typed. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'

/** Four groups of four out of 32 letters: 80 bits. */
function makePassword(secret: string): string {
  const letters = [...deriveKey(secret, 'operator password')].slice(0, 16).map((byte) => ALPHABET[byte % 32])
  return letters.join('').replace(/(.{4})(?=.)/g, '$1-')
}

export function isPassword({ password }: OperatorSettings, tried: string): boolean {
  return isSameSecret(password, tried)
}

const SESSION = 'operator-session+jwt'
const BROWSER = 'operator-browser+jwt'

/** The cookie of a browser that has given the password. */
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

/**
 * The cookie that recognises a browser from which the password was given. It holds the browser's id, and is no session.
 */
export function mintBrowser(settings: OperatorSettings, id: string, now: Date): Promise<string> {
  return mint(settings, BROWSER, id, BROWSER_SECONDS, now)
}

/** The browser's id in such a cookie; undefined if the cookie is not valid. */
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
