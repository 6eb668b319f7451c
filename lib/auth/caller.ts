import { readBearer } from '#lib/http/bearer.ts'
import { type Session, type SessionSettings, verifySession } from './session.ts'

/**
 * The session that `request` brings as its Bearer token.
 * @throws Refusal `bearer-missing`, `bearer-invalid`, `session-expired`
 */
export async function identifyCaller(settings: SessionSettings, request: Request, now: Date): Promise<Session> {
  return await verifySession(settings, readBearer(request), now)
}
