import { createRemoteJWKSet, customFetch, errors, type JWTVerifyGetKey } from 'jose'
import { isLoopback } from '#lib/config/shapes.ts'
import { Refusal } from '#lib/http/refusal.ts'

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

/** What is known of a provider, once it has been asked. */
export interface Provider {
  /** Finds the key of a token, for jose. Throws Refusal `unavailable` when the provider cannot be asked. */
  keys: JWTVerifyGetKey
  /** The userinfo endpoint (OpenID Connect Core 1.0 §5.3), if discovery names one. */
  userinfo: URL | undefined
}

/** One key set per provider and process: jose keeps the fetched keys, and the pause between two fetches, in the set. */
const known = globalThis as { identityProviders?: Map<string, Promise<Provider>> }

const TIMEOUT = 5_000
const LARGEST_DOCUMENT = 512 * 1024

/** @throws Refusal `unavailable` when the provider cannot be asked where its keys are */
export async function openProvider(settings: ProviderSettings): Promise<Provider> {
  known.identityProviders ??= new Map()
  const name = JSON.stringify([settings.issuer, settings.jwksUrl])
  const provider = known.identityProviders.get(name) ?? findProvider(settings)
  known.identityProviders.set(name, provider)
  try {
    return await provider
  } catch (cause) {
    known.identityProviders.delete(name)
    throw unreachable(cause)
  }
}

async function findProvider({ jwksUrl, issuer }: ProviderSettings): Promise<Provider> {
  if (jwksUrl !== undefined) return { keys: openKeys(requireSecure(jwksUrl)), userinfo: undefined }
  const { jwks, userinfo } = await discover(issuer)
  return { keys: openKeys(requireSecure(jwks)), userinfo: secureOrNone(userinfo) }
}

function openKeys(url: URL): JWTVerifyGetKey {
  const keys = createRemoteJWKSet(url, {
    timeoutDuration: TIMEOUT,
    [customFetch]: (address, init) => fetchCapped(address, { signal: init.signal }),
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

/** Reads the issuer's discovery document, which must name the very issuer that it was asked of (§4.3). */
async function discover(issuer: string): Promise<{ jwks: string; userinfo: string | undefined }> {
  const url = requireSecure(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`)
  const response = await fetchCapped(url.href)
  if (response.status !== 200) throw new Error(`discovery answered ${response.status}`)
  const document: unknown = await response.json()
  if (typeof document !== 'object' || document === null) throw new Error('discovery answered no JSON object')
  if (!('issuer' in document) || document.issuer !== issuer) throw new Error('discovery is that of another issuer')
  if (!('jwks_uri' in document) || typeof document.jwks_uri !== 'string') throw new Error('discovery has no jwks_uri')
  const userinfo = 'userinfo_endpoint' in document ? document.userinfo_endpoint : undefined
  return { jwks: document.jwks_uri, userinfo: typeof userinfo === 'string' ? userinfo : undefined }
}

/** Over plain HTTP an attacker on the way could replace the keys, and then sign tokens for every user. */
function requireSecure(address: string): URL {
  const url = new URL(address)
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLoopback(url.hostname))) {
    throw new Error('a provider is asked over https only')
  }
  return url
}

/** An access token is never sent over plain HTTP, so a userinfo endpoint without TLS counts as absent. */
function secureOrNone(address: string | undefined): URL | undefined {
  try {
    return address === undefined ? undefined : requireSecure(address)
  } catch {
    return undefined
  }
}

/** A GET that follows no redirect, waits no longer than `signal` and reads no endless body. */
export async function fetchCapped(
  address: string,
  { signal = AbortSignal.timeout(TIMEOUT), authorization }: { signal?: AbortSignal; authorization?: string } = {},
): Promise<Response> {
  const headers = { accept: 'application/json', ...(authorization !== undefined && { authorization }) }
  const response = await fetch(address, { headers, redirect: 'error', signal })
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.length
    if (size > LARGEST_DOCUMENT) throw new Error('the provider answered with more than 512 KiB')
    chunks.push(chunk)
  }
  return new Response(Buffer.concat(chunks), { status: response.status })
}

function unreachable(cause: unknown): Refusal {
  return new Refusal('unavailable', 'the identity provider cannot be reached', { cause, retryAfter: 10 })
}
