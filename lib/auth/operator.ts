import { randomUUID } from 'node:crypto'
import { jwtVerify, SignJWT } from 'jose'
import { deriveKey, isSameSecret } from './shared-secret.ts'

/** Whom the dashboard lets in. */
export interface OperatorSettings {
  password: string
  /** whether the password is one of our own making, which the operator must be told */
  isMade: boolean
  /** signs the operator's cookies: of the service's secret and the password, so that a new password ends all sessions */
  key: Uint8Array
}

/** How long a session lasts, and how long a browser is remembered, in seconds. */
export const OPERATOR_SESSION_SECONDS = 12 * 3600
export const BROWSER_SECONDS = 180 * 86_400

/**
 * What opens the dashboard: the password given, or one made of the embedded secret, or nothing. Pure.
 * @param secret what sessions are signed with
 * @param embeddedSecret what the embedded default keeps for itself, made at its first start
 */
export function composeOperator(
  secret: string,
  { password, embeddedSecret }: { password: string | undefined; embeddedSecret: string | undefined },
): OperatorSettings | undefined {
  const opens = password ?? (embeddedSecret && makePassword(embeddedSecret))
  if (!opens) return undefined
  return { password: opens, isMade: password === undefined, key: deriveKey(secret, 'operator cookies', opens) }
}

/** Without what is easily taken for something else when read aloud or typed (Crockford's base 32). */
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

/** The cookie of a browser from which the password has been given: it opens nothing, and keeps its name. */
export function mintBrowser(settings: OperatorSettings, id: string, now: Date): Promise<string> {
  return mint(settings, BROWSER, id, BROWSER_SECONDS, now)
}

/** The name of the browser that `token` stands for. */
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
