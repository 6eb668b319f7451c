import { createHash, hkdfSync, timingSafeEqual } from 'node:crypto'
import { readBearer } from '#lib/http/bearer.ts'
import { Refusal, type RefusalCode } from '#lib/refusal/refusal.ts'

/**
 * Admits a machine that sends `secret` as its Bearer token.
 * @param says the code and the message of the 501 where no secret is configured, and the message of the 401
 * @throws Refusal `bearer-missing`, `bearer-invalid`; `says.code`
 */
export function requireSecret(
  secret: string | undefined,
  request: Request,
  says: { code: RefusalCode; unset: string; wrong: string },
): void {
  const token = readBearer(request)
  if (secret === undefined) throw new Refusal(says.code, says.unset)
  if (!isSameSecret(token, secret)) throw new Refusal('bearer-invalid', says.wrong)
}

/** Compares in constant time, also texts of different lengths. */
export function isSameSecret(one: string, other: string): boolean {
  return timingSafeEqual(digest(one), digest(other))
}

/** Derives a key of 32 bytes for one purpose, so that a key that leaks is of no use for another purpose. */
export function deriveKey(secret: string, purpose: string, salt = ''): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, salt, purpose, 32))
}

/** Every digest has the same length, as timingSafeEqual demands. */
const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
