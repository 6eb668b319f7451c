import { createRemoteJWKSet, customFetch, errors, type JWTVerifyGetKey } from 'jose'
import { Refusal } from '#lib/refusal.ts'

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
}

/** One key set per provider and process: jose caches keys and rests between two fetches in the set itself. */
const known = globalThis as { providerKeys?: Map<string, Promise<JWTVerifyGetKey>> }

const TIMEOUT = 5_000
const LARGEST_DOCUMENT = 512 * 1024

/**
 * The function by which jose finds a token's key.
 * @throws Refusal unavailable, from here or from the function, when the provider cannot be asked
 */
export async function providerKeys(settings: ProviderSettings): Promise<JWTVerifyGetKey> {
  known.providerKeys ??= new Map()
  const name = JSON.stringify([settings.issuer, settings.jwksUrl])
  const keys = known.providerKeys.get(name) ?? findKeys(settings)
  known.providerKeys.set(name, keys)
  try {
    return await keys
  } catch (cause) {
    known.providerKeys.delete(name)
    throw unreachable(cause)
  }
}

async function findKeys(settings: ProviderSettings): Promise<JWTVerifyGetKey> {
  const url = requireSecure(settings.jwksUrl ?? (await discover(settings.issuer)))
  const keys = createRemoteJWKSet(url, {
    timeoutDuration: TIMEOUT,
    [customFetch]: (address, init) => fetchCapped(address, init.signal),
  })
  return async (header, token) => {
    try {
      return await keys(header, token)
    } catch (cause) {
      // These two are about the token; all else that can happen here is about the provider.
      if (cause instanceof errors.JWKSNoMatchingKey || cause instanceof errors.JWKSMultipleMatchingKeys) throw cause
      if (cause instanceof errors.JOSENotSupported) throw cause
      throw unreachable(cause)
    }
  }
}

/** Where the issuer says that its keys are. The document must name the very issuer that it was asked of (§4.3). */
async function discover(issuer: string): Promise<string> {
  const url = requireSecure(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`)
  const response = await fetchCapped(url.href, AbortSignal.timeout(TIMEOUT))
  if (response.status !== 200) throw new Error(`discovery answered ${response.status}`)
  const document: unknown = await response.json()
  if (typeof document !== 'object' || document === null) throw new Error('discovery answered no JSON object')
  if (!('issuer' in document) || document.issuer !== issuer) throw new Error('discovery is that of another issuer')
  if (!('jwks_uri' in document) || typeof document.jwks_uri !== 'string') throw new Error('discovery has no jwks_uri')
  return document.jwks_uri
}

/** Keys that anybody on the way could replace would verify anybody's token. */
function requireSecure(address: string): URL {
  const url = new URL(address)
  const isLoopback = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(url.hostname)
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLoopback)) {
    throw new Error('a provider is asked over https only')
  }
  return url
}

/** A GET that follows no redirect and reads no endless body. */
async function fetchCapped(address: string, signal: AbortSignal): Promise<Response> {
  const response = await fetch(address, { headers: { accept: 'application/json' }, redirect: 'error', signal })
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
