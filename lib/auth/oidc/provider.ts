import { createLocalJWKSet, createRemoteJWKSet, customFetch, errors, type JWTVerifyGetKey } from 'jose'
import { perProcess } from '#lib/observability/per-process.ts'
import { discover } from './discovery.ts'
import { fetchCapped, isSecure, PROVIDER_TIMEOUT_MS, requireSecure, unreachable } from './provider-request.ts'

/**
 * An OpenID Connect provider whose access tokens are exchanged for sessions. `issuer` is compared byte for byte. It need
 * not be a URL if `jwksUrl` is set; otherwise discovery finds the keys (OpenID Connect Discovery 1.0 §4).
 */
export interface ProviderSettings {
  issuer: string
  audience: string
  jwksUrl?: string | undefined
  /** JWS algorithms, never HS*. */
  algorithms: readonly string[]
  /** The claim with the email address. */
  emailClaim: string
  /** The public client with which this service's pages sign in, if one is registered. */
  clientId?: string | undefined
}

export interface Provider {
  /** Finds the key of a token, for jose; JWKSMultipleMatchingKeys has the candidates. @throws Refusal `unavailable` while the provider cannot be reached */
  keys: JWTVerifyGetKey
  /** The userinfo endpoint (OpenID Connect Core 1.0 §5.3), if discovery names one over TLS. */
  userinfo: URL | undefined
}

/**
 * One key set per address and process: jose caches the keys and limits the requests per set. A set outlives the discovery
 * document that named it.
 */
const keySets = perProcess('provider keys', () => new Map<string, JWTVerifyGetKey>())

/** @throws Refusal `unavailable` while discovery is needed and fails */
export async function openProvider({ jwksUrl, issuer }: ProviderSettings): Promise<Provider> {
  if (jwksUrl !== undefined) return { keys: openKeys(jwksUrl), userinfo: undefined }
  const { jwks_uri: jwks, userinfo_endpoint: userinfo } = await discover(issuer)
  return { keys: openKeys(jwks), userinfo: secureOrNone(userinfo) }
}

function openKeys(address: string): JWTVerifyGetKey {
  const keys = keySets.get(address) ?? fetchKeys(address)
  keySets.set(address, keys)
  return keys
}

function fetchKeys(address: string): JWTVerifyGetKey {
  const keys = createRemoteJWKSet(requireSecure(address), {
    timeoutDuration: PROVIDER_TIMEOUT_MS,
    [customFetch]: (url, init) => fetchCapped(url, { signal: init.signal }),
  })
  return async (header, token) => {
    try {
      return await keys(header, token)
    } catch (cause) {
      const unnamed = keys.jwks()?.keys.filter(({ kid }) => kid === undefined) ?? []
      // The provider names the key in its tokens, and not in its list.
      if (cause instanceof errors.JWKSNoMatchingKey && header.kid !== undefined && unnamed.length > 0) {
        return await createLocalJWKSet({ keys: unnamed })({ ...header, kid: undefined }, token)
      }
      // These three errors are about the token; every other one is about the provider.
      if (cause instanceof errors.JWKSNoMatchingKey || cause instanceof errors.JWKSMultipleMatchingKeys) throw cause
      if (cause instanceof errors.JOSENotSupported) throw cause
      throw unreachable(cause)
    }
  }
}

/** Access tokens are never sent over plain HTTP, so a userinfo endpoint without TLS counts as absent. */
function secureOrNone(address: string | undefined): URL | undefined {
  if (address === undefined || !URL.canParse(address)) return undefined
  const url = new URL(address)
  return isSecure(url) ? url : undefined
}
