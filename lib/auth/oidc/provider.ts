import { createRemoteJWKSet, customFetch, errors, type JWTVerifyGetKey } from 'jose'
import { discover } from './discovery.ts'
import { fetchCapped, isSecure, PROVIDER_TIMEOUT_MS, requireSecure, unreachable } from './provider-request.ts'

/**
 * An OpenID Connect provider whose access tokens are exchanged for sessions. `issuer` is compared byte for byte, and
 * need not be a URL when `jwksUrl` says where the keys are (some issuers are a plain name); without `jwksUrl` the
 * issuer is asked (OpenID Connect Discovery 1.0 §4).
 */
export interface ProviderSettings {
  issuer: string
  audience: string
  jwksUrl?: string | undefined
  /** JWS algorithms, never of the HS family. */
  algorithms: readonly string[]
  /** Name of the claim that holds the email address. */
  emailClaim: string
  /** The public client by which pages of this service sign in, if the provider knows one. */
  clientId?: string | undefined
}

/** The facts about a provider, once it has been asked. */
export interface Provider {
  /** Finds the key of a token, for jose. Throws Refusal `unavailable` when the provider cannot be asked. */
  keys: JWTVerifyGetKey
  /** The userinfo endpoint (OpenID Connect Core 1.0 §5.3), if discovery names one. */
  userinfo: URL | undefined
}

/**
 * One key set per address and process: jose keeps the fetched keys, and the pause between two fetches, in the set. It
 * outlives the discovery document that named it.
 */
const known = globalThis as { providerKeys?: Map<string, JWTVerifyGetKey> }

/** @throws Refusal `unavailable` when the provider cannot be asked where its keys are */
export async function openProvider({ jwksUrl, issuer }: ProviderSettings): Promise<Provider> {
  if (jwksUrl !== undefined) return { keys: openKeys(jwksUrl), userinfo: undefined }
  const { jwks_uri: jwks, userinfo_endpoint: userinfo } = await discover(issuer)
  return { keys: openKeys(jwks), userinfo: secureOrNone(userinfo) }
}

function openKeys(address: string): JWTVerifyGetKey {
  known.providerKeys ??= new Map()
  const keys = known.providerKeys.get(address) ?? fetchKeys(address)
  known.providerKeys.set(address, keys)
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
      // These three errors are about the token; every other one is about the provider.
      if (cause instanceof errors.JWKSNoMatchingKey || cause instanceof errors.JWKSMultipleMatchingKeys) throw cause
      if (cause instanceof errors.JOSENotSupported) throw cause
      throw unreachable(cause)
    }
  }
}

/** An access token is never sent over plain HTTP, so a userinfo endpoint without TLS counts as absent. */
function secureOrNone(address: string | undefined): URL | undefined {
  if (address === undefined || !URL.canParse(address)) return undefined
  const url = new URL(address)
  return isSecure(url) ? url : undefined
}
