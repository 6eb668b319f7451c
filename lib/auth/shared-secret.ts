import { createHash, hkdfSync, timingSafeEqual } from 'node:crypto'
import { readBearer } from '#lib/http/bearer.ts'
import { Refusal, type RefusalCode } from '#lib/refusal/refusal.ts'

/**
 * Requires `secret` as the Bearer token.
 * @param refusals the code and message if no secret is configured, and the message for a wrong one
 * @throws Refusal `bearer-missing`, `bearer-invalid`; `refusals.code`
 */
export function requireSecret(
  secret: string | undefined,
  request: Request,
  refusals: { code: RefusalCode; unset: string; wrong: string },
): void {
  const token = readBearer(request)
  if (secret === undefined) throw new Refusal(refusals.code, refusals.unset)
  if (!isSameSecret(token, secret)) throw new Refusal('bearer-invalid', refusals.wrong)
}

/** Compares two secrets of any length in constant time. */
export function isSameSecret(one: string, other: string): boolean {
  return timingSafeEqual(digest(one), digest(other))
}

/** Derives a 32-byte key for one purpose, so that a leaked key is useless for any other. */
export function deriveKey(secret: string, purpose: string, salt = ''): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, salt, purpose, 32))
}

/** timingSafeEqual needs inputs of equal length. */
const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
