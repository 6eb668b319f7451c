import { createHash, hkdfSync, timingSafeEqual } from 'node:crypto'
import { Refusal, type RefusalCode } from '#lib/http/refusal.ts'

/**
 * Lets in who sends `Authorization: Bearer <secret>`: a machine that the operator has told.
 * @param says the 501 where there is no such secret, and the 401 for another one
 * @throws Refusal `unauthenticated`; `not-wired`
 */
export function requireSecret(
  secret: string | undefined,
  request: Request,
  says: { code: RefusalCode; unset: string; wrong: string },
): void {
  const [, token] = request.headers.get('authorization')?.match(/^bearer +(\S.*)$/i) ?? []
  if (token === undefined) throw new Refusal('bearer-missing', 'missing bearer token')
  if (secret === undefined) throw new Refusal(says.code, says.unset)
  if (!isSameSecret(token, secret)) throw new Refusal('bearer-invalid', says.wrong)
}

/** Compares in constant time, whatever the lengths. */
export function isSameSecret(one: string, other: string): boolean {
  return timingSafeEqual(digest(one), digest(other))
}

/** 32 bytes of their own for each purpose, so that no two uses of the secret can be played against each other. */
export function deriveKey(secret: string, purpose: string, salt = ''): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, salt, purpose, 32))
}

/** Of one length, whatever was sent. */
const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
