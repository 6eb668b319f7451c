import { Refusal } from '#lib/http/refusal.ts'
import { type Session, type SessionSettings, verifySession } from './session.ts'

/**
 * The session of whoever sent `request`, from `Authorization: Bearer <token>` (RFC 6750 §2.1; the scheme in any case).
 * @throws Refusal unauthenticated
 */
export async function identifyCaller(settings: SessionSettings, request: Request, now: Date): Promise<Session> {
  const header = request.headers.get('authorization')
  const [, token] = header?.match(/^bearer +(\S.*)$/i) ?? []
  if (token === undefined) throw new Refusal('bearer-missing', 'missing bearer token')
  return await verifySession(settings, token, now)
}
