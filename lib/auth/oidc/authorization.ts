import * as oauth from 'oauth4webapi'
import { isLoopback } from '#lib/config/shapes.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { discover } from './discovery.ts'
import type { ProviderSettings } from './provider.ts'
import { PROVIDER_TIMEOUT_MS, unreachable } from './provider-request.ts'

/** How a browser signs in with the provider: as a public client with PKCE (RFC 7636), which has no secret. */
export interface BrowserClient {
  provider: ProviderSettings
  clientId: string
  /** where the provider redirects the browser; it must be registered there */
  redirectUri: string
}

/** The secrets of a sign-in, which the browser keeps until the provider redirects it back. */
export interface PendingSignIn {
  state: string
  verifier: string
}

/**
 * Begins a sign-in: resolves to the provider's page (`location`) and to the secrets for the browser.
 * @param choosesAccount whether the user chooses an account even if the browser is signed in at the provider
 * @throws Refusal `unavailable`
 */
export async function beginSignIn(
  client: BrowserClient,
  { choosesAccount }: { choosesAccount: boolean },
): Promise<PendingSignIn & { location: string }> {
  const { provider, clientId, redirectUri } = client
  const { authorization_endpoint: endpoint, prompt_values_supported: prompts } = await discover(provider.issuer)
  if (!endpoint) throw new Refusal('unavailable', 'the identity provider has no sign-in page', { retryAfter: 3600 })
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
    // A provider that lists its prompts may not have this one; signing in again also lets the user choose.
    ...(choosesAccount && { prompt: prompts?.includes('select_account') === false ? 'login' : 'select_account' }),
  }
  for (const [name, value] of Object.entries(query)) location.searchParams.set(name, value)
  return { location: location.href, state, verifier }
}

/**
 * Finishes a sign-in: exchanges the code in the redirect for the provider's access token.
 * @throws Refusal `identity-token-invalid` if the user or the provider refuses or the response is invalid; `unavailable`
 */
export async function finishSignIn(client: BrowserClient, pending: PendingSignIn, redirect: URL): Promise<string> {
  const { provider, clientId, redirectUri } = client
  const server = await discover(provider.issuer)
  const self = { client_id: clientId }
  let parameters: URLSearchParams
  try {
    parameters = oauth.validateAuthResponse(server, self, redirect, pending.state)
  } catch (cause) {
    throw notSignedIn(cause)
  }
  const options = { ...secured(provider.issuer), additionalParameters: audienceOf(provider) }
  const response = await oauth
    .authorizationCodeGrantRequest(server, self, oauth.None(), parameters, redirectUri, pending.verifier, options)
    .catch((cause) => {
      throw unreachable(cause)
    })
  if (response.status >= 500) throw unreachable(new Error(`the token endpoint responded with ${response.status}`))
  try {
    return (await oauth.processAuthorizationCodeResponse(server, self, response)).access_token
  } catch (cause) {
    throw notSignedIn(cause)
  }
}

const notSignedIn = (cause: unknown) =>
  new Refusal('identity-token-invalid', 'the identity provider did not sign you in', { cause })

/** Only a provider on this machine may be reached without TLS. */
function secured(issuer: string) {
  const { protocol, hostname } = new URL(issuer)
  return {
    [oauth.allowInsecureRequests]: protocol === 'http:' && isLoopback(hostname),
    signal: () => AbortSignal.timeout(PROVIDER_TIMEOUT_MS),
  }
}

/** Names the audience of the access token: some providers take `audience`, others `resource`, a URL (RFC 8707 §2). */
function audienceOf({ audience }: ProviderSettings): Record<string, string> {
  return { audience, ...(URL.canParse(audience) && /^https?:/.test(audience) && { resource: audience }) }
}
