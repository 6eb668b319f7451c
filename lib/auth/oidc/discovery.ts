import type { AuthorizationServer } from 'oauth4webapi'
import { z } from 'zod'
import { describeFailure, log } from '#lib/observability/log.ts'
import { perProcess } from '#lib/observability/per-process.ts'
import { fetchCapped, requireSecure, unreachable } from './provider-request.ts'

/** How long a discovery document is cached, and so how late a provider's new endpoints are noticed. */
const CACHE_MS = 60 * 60_000
/** How long to keep using an older document after a failed request. */
const RETRY_AFTER_MS = 60_000

/** An endpoint that isn't a string is treated as absent. */
const endpoint = z.string().optional().catch(undefined)

const DOCUMENT = z.looseObject({
  issuer: z.string(),
  jwks_uri: z.string(),
  authorization_endpoint: endpoint,
  token_endpoint: endpoint,
  userinfo_endpoint: endpoint,
  /** OpenID Connect Initiating User Registration 1.0 §3 */
  prompt_values_supported: z.array(z.string()).optional().catch(undefined),
})

/** A discovery document. Only its `jwks_uri` is checked to be secure. */
type Discovered = AuthorizationServer & Pick<z.infer<typeof DOCUMENT>, 'jwks_uri' | 'prompt_values_supported'>

interface CachedDocument {
  document: Promise<Discovered>
  /** milliseconds since the epoch */
  until: number
}

const documents = perProcess('discovery documents', () => new Map<string, CachedDocument>())

/**
 * Returns the issuer's discovery document (OpenID Connect Discovery 1.0 §4), cached for an hour: anyone can start a
 * sign-in, and each would otherwise cause a request. After a failure, an older document is used for another minute.
 * @throws Refusal `unavailable`
 */
export async function discover(issuer: string): Promise<Discovered> {
  const cached = documents.get(issuer)
  const { document } = cached !== undefined && Date.now() < cached.until ? cached : keep(issuer, cached?.document)
  try {
    return await document
  } catch (cause) {
    if (documents.get(issuer)?.document === document) documents.delete(issuer)
    throw unreachable(cause)
  }
}

function keep(issuer: string, older: Promise<Discovered> | undefined): CachedDocument {
  const document = fetchDocument(issuer).catch((error: unknown) => {
    if (older === undefined) throw error
    log('info', 'discovery', { failure: describeFailure(error) })
    fresh.until = Date.now() + RETRY_AFTER_MS
    return older
  })
  const fresh: CachedDocument = { document, until: Date.now() + CACHE_MS }
  documents.set(issuer, fresh)
  return fresh
}

/** The document's issuer must be the requested one, byte for byte (§4.3). */
async function fetchDocument(issuer: string): Promise<Discovered> {
  const url = requireSecure(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`)
  const response = await fetchCapped(url.href)
  if (response.status !== 200) throw new Error(`discovery responded with ${response.status}`)
  const document = DOCUMENT.parse(await response.json())
  if (document.issuer !== issuer) throw new Error('the discovery document names another issuer')
  requireSecure(document.jwks_uri)
  // oauth4webapi checks the types of the other fields when it reads them.
  return document as Discovered
}
