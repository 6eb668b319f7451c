import { z } from 'zod'
import { describeFailure, log } from '#lib/observability/log.ts'
import { fetchCapped } from './provider-request.ts'

const CLAIMS = z.record(z.string(), z.unknown())

/**
 * The answer of the provider's userinfo endpoint to the holder of an access token (OpenID Connect Core 1.0 §5.3);
 * nothing if it refuses, cannot be asked, or speaks of another user than `sub` (§5.3.2: such an answer must not be
 * used). Signing in needs no email, so a failure here does not stop it.
 */
export async function askUserinfo(endpoint: URL, token: string, sub: string): Promise<Record<string, unknown>> {
  try {
    const response = await fetchCapped(endpoint.href, { authorization: `Bearer ${token}` })
    if (response.status !== 200) throw new Error(`userinfo answered ${response.status}`)
    const claims = CLAIMS.parse(await response.json())
    if (claims.sub !== sub) throw new Error('userinfo is that of another user')
    return claims
  } catch (error) {
    log('info', 'userinfo', { failure: describeFailure(error) })
    return {}
  }
}
