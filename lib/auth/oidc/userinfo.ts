import { z } from 'zod'
import { describeFailure, log } from '#lib/observability/log.ts'
import { fetchCapped } from './provider-request.ts'

const CLAIMS = z.record(z.string(), z.unknown())

/**
 * Requests the claims of an access token from the userinfo endpoint (OpenID Connect Core 1.0 §5.3). Returns no claims
 * if the request fails or the response is for a user other than `sub`, which must not be used (§5.3.2): signing in does
 * not need an email.
 */
export async function askUserinfo(endpoint: URL, token: string, sub: string): Promise<Record<string, unknown>> {
  try {
    const response = await fetchCapped(endpoint.href, { authorization: `Bearer ${token}` })
    if (response.status !== 200) throw new Error(`userinfo responded with ${response.status}`)
    const claims = CLAIMS.parse(await response.json())
    if (claims.sub !== sub) throw new Error('userinfo is for another user')
    return claims
  } catch (error) {
    log('info', 'userinfo', { failure: describeFailure(error) })
    return {}
  }
}
