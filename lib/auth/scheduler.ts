import { createHash, timingSafeEqual } from 'node:crypto'
import { Refusal } from '#lib/refusal.ts'

/**
 * Lets a scheduler in that sends `Authorization: Bearer <CRON_SECRET>`.
 * @throws Refusal `unauthenticated`; `not-wired` when there is no such secret
 */
export function requireScheduler(secret: string | undefined, request: Request): void {
  const [, token] = request.headers.get('authorization')?.match(/^bearer +(\S.*)$/i) ?? []
  if (token === undefined) throw new Refusal('unauthenticated', 'missing bearer token')
  if (secret === undefined) throw new Refusal('not-wired', 'no CRON_SECRET is configured')
  if (!timingSafeEqual(digest(token), digest(secret))) throw new Refusal('unauthenticated', 'invalid scheduler token')
}

/** Of one length, whatever was sent. */
const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
