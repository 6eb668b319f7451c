import type { AuthorizationServer } from 'oauth4webapi'
import { z } from 'zod'
import { describeFailure, log } from '#lib/observability/log.ts'
import { fetchCapped, requireSecure, unreachable } from './provider-request.ts'

/** A provider that moves its endpoints is followed after this time, without a restart. */
const KEPT_FOR_MS = 60 * 60_000
/** The time for which an older answer holds, where the provider gives no new one. */
const ASKED_AGAIN_AFTER_MS = 60_000

/** An endpoint of another type counts as absent. */
const endpoint = z.string().optional().catch(undefined)

const DOCUMENT = z.looseObject({
  issuer: z.string(),
  jwks_uri: z.string(),
  authorization_endpoint: endpoint,
  token_endpoint: endpoint,
  userinfo_endpoint: endpoint,
})

/** The addresses of a provider's keys and endpoints. Only the address of the keys is known to be secure. */
type Discovered = AuthorizationServer & { jwks_uri: string }

interface Kept {
  document: Promise<Discovered>
  /** milliseconds since the epoch */
  until: number
}

// A build may bundle the routes apart, so what they share hangs on the process.
const known = globalThis as { discoveries?: Map<string, Kept> }

/**
 * The issuer's discovery document (OpenID Connect Discovery 1.0 §4). The answer is kept for an hour: anybody can begin
 * a sign-in, and each would ask the provider. A failure is not kept, and where an older answer is known it holds for
 * another minute.
 * @throws Refusal `unavailable`
 */
export async function discover(issuer: string): Promise<Discovered> {
  known.discoveries ??= new Map()
  const kept = known.discoveries.get(issuer)
  const { document } = kept !== undefined && Date.now() < kept.until ? kept : keep(issuer, kept?.document)
  try {
    return await document
  } catch (cause) {
    if (known.discoveries.get(issuer)?.document === document) known.discoveries.delete(issuer)
    throw unreachable(cause)
  }
}

function keep(issuer: string, older: Promise<Discovered> | undefined): Kept {
  const document = fetchDocument(issuer).catch((error: unknown) => {
    if (older === undefined) throw error
    log('info', 'discovery', { failure: describeFailure(error) })
    asked.until = Date.now() + ASKED_AGAIN_AFTER_MS
    return older
  })
  const asked: Kept = { document, until: Date.now() + KEPT_FOR_MS }
  known.discoveries?.set(issuer, asked)
  return asked
}

/** The document must name the very issuer that it was asked of (§4.3), byte for byte. */
async function fetchDocument(issuer: string): Promise<Discovered> {
  const url = requireSecure(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`)
  const response = await fetchCapped(url.href)
  if (response.status !== 200) throw new Error(`discovery answered ${response.status}`)
  const document = DOCUMENT.parse(await response.json())
  if (document.issuer !== issuer) throw new Error('discovery is that of another issuer')
  requireSecure(document.jwks_uri)
  // oauth4webapi checks the type of every other field when it reads the field.
  return document as Discovered
}
