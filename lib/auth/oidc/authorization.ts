import * as oauth from 'oauth4webapi'
import { isLoopback } from '#lib/config/shapes.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { discover } from './discovery.ts'
import type { ProviderSettings } from './provider.ts'
import { PROVIDER_TIMEOUT_MS, unreachable } from './provider-request.ts'

/** How a browser signs in at the provider: a public client with PKCE (RFC 7636), which has no secret. */
export interface BrowserClient {
  provider: ProviderSettings
  clientId: string
  /** the address that the provider sends the browser back to; the provider must know it */
  redirectUri: string
}

/** The state of a sign-in, which the browser keeps between going to the provider and coming back. */
export interface PendingSignIn {
  state: string
  verifier: string
}

/**
 * Begins a sign-in: resolves to the address at the provider for the browser to go to (`location`), and to the secrets that
 * the browser keeps until it returns.
 * @throws Refusal `unavailable`
 */
export async function beginSignIn(client: BrowserClient): Promise<PendingSignIn & { location: string }> {
  const { provider, clientId, redirectUri } = client
  const { authorization_endpoint: endpoint } = await discover(provider.issuer)
  if (!endpoint) throw new Refusal('unavailable', 'the identity provider has no page to sign in', { retryAfter: 3600 })
  const state = oauth.generateRandomState()
  const verifier = oauth.generateRandomCodeVerifier()
  const location = new URL(endpoint)
  const query = {
    client_id: clientId,
    redirect_uri: redirectUri,
    response_type: 'code',
    scope: 'openid email',
    state,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    ...audienceOf(provider),
  }
  for (const [name, value] of Object.entries(query)) location.searchParams.set(name, value)
  return { location: location.href, state, verifier }
}

/**
 * Ends a sign-in with the address that the provider has sent the browser back to: the provider's access token.
 * @throws Refusal `identity-token-invalid` when the person or the provider refuses, or the provider's answer is of no use; `unavailable`
 */
export async function finishSignIn(client: BrowserClient, kept: PendingSignIn, returned: URL): Promise<string> {
  const { provider, clientId, redirectUri } = client
  const server = await discover(provider.issuer)
  const self = { client_id: clientId }
  let answer: URLSearchParams
  try {
    answer = oauth.validateAuthResponse(server, self, returned, kept.state)
  } catch (cause) {
    throw notSignedIn(cause)
  }
  const options = { ...secured(provider.issuer), additionalParameters: audienceOf(provider) }
  const response = await oauth
    .authorizationCodeGrantRequest(server, self, oauth.None(), answer, redirectUri, kept.verifier, options)
    .catch((cause) => {
      throw unreachable(cause)
    })
  if (response.status >= 500) throw unreachable(new Error(`the token endpoint answers ${response.status}`))
  try {
    return (await oauth.processAuthorizationCodeResponse(server, self, response)).access_token
  } catch (cause) {
    throw notSignedIn(cause)
  }
}

const notSignedIn = (cause: unknown) =>
  new Refusal('identity-token-invalid', 'the identity provider has not signed you in', { cause })

/** Only a provider on this very machine is asked without TLS. */
function secured(issuer: string) {
  const { protocol, hostname } = new URL(issuer)
  return {
    [oauth.allowInsecureRequests]: protocol === 'http:' && isLoopback(hostname),
    signal: () => AbortSignal.timeout(PROVIDER_TIMEOUT_MS),
  }
}

/**
 * The parameter that names the audience of the access token. Some providers know `audience`, others `resource`, which
 * must be a URL (RFC 8707 §2).
 */
function audienceOf({ audience }: ProviderSettings): Record<string, string> {
  return { audience, ...(URL.canParse(audience) && /^https?:/.test(audience) && { resource: audience }) }
}
