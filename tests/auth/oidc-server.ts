import { createHash } from 'node:crypto'
import { exportJWK, generateKeyPair, type JWK } from 'jose'
import Provider from 'oidc-provider'
import { type LocalServer, serveLocally } from '../support/local-server.ts'
import { freePort } from '../support/port.ts'

/** The resource that access tokens are for: the audience that the service expects. */
export const AUDIENCE = 'https://pay.example/api'
const REDIRECT = 'http://127.0.0.1/callback'

/** The provider's users. `token` is added to the access token, `userinfo` is returned only by the userinfo endpoint. */
const USERS: Record<string, { email: string; email_verified: boolean; tells: 'token' | 'userinfo' }> = {
  alice: { email: 'Alice@b.example', email_verified: true, tells: 'token' },
  bob: { email: 'bob@b.example', email_verified: false, tells: 'token' },
  erin: { email: 'erin@b.example', email_verified: true, tells: 'token' },
  dora: { email: 'dora@b.example', email_verified: true, tells: 'token' },
  carol: { email: 'carol@b.example', email_verified: true, tells: 'userinfo' },
}

const PROGRAM = { id: 'erp', secret: 'a secret of the client erp' }

export interface OidcServer {
  issuer: string
  start(): Promise<void>
  stop(): Promise<void>
  /** Signs with a new key from now on, and publishes only that one. */
  rotate(): Promise<void>
  /** Logs a user in with code and PKCE, as a browser would. */
  logIn(user: string): Promise<{ access_token: string; id_token: string }>
  /** Gives the client `erp`, a program, an access token for its own id and secret. */
  admitProgram(): Promise<string>
}

/**
 * A complete OpenID provider on a separate port, not yet started.
 * @param redirects additional redirect URIs of its client `web`
 */
export async function openOidcServer(redirects: readonly string[] = []): Promise<OidcServer> {
  const port = await freePort()
  const issuer = `http://127.0.0.1:${port}`
  let keys = 0
  let server: LocalServer | undefined
  let provider = createProvider(issuer, await signingKey(keys), redirects)
  return {
    issuer,
    start: async () => {
      server = await serveLocally((request, response) => provider.callback()(request, response), port)
    },
    stop: async () => {
      await server?.close()
      server = undefined
    },
    rotate: async () => {
      keys += 1
      provider = createProvider(issuer, await signingKey(keys), redirects)
    },
    logIn: (user) => logIn(issuer, user),
    admitProgram: () => admitProgram(issuer),
  }
}

async function signingKey(number: number): Promise<JWK> {
  const { privateKey } = await generateKeyPair('ES256', { extractable: true })
  return { ...(await exportJWK(privateKey)), kid: `k${number}`, alg: 'ES256', use: 'sig' }
}

function createProvider(issuer: string, key: JWK, redirects: readonly string[]): Provider {
  return new Provider(issuer, {
    jwks: { keys: [key] },
    cookies: { keys: ['a key for cookies'] },
    clients: [
      {
        client_id: 'web',
        token_endpoint_auth_method: 'none',
        application_type: 'native',
        redirect_uris: [REDIRECT, ...redirects],
        grant_types: ['authorization_code'],
        response_types: ['code'],
        id_token_signed_response_alg: 'ES256',
      },
      {
        client_id: PROGRAM.id,
        client_secret: PROGRAM.secret,
        redirect_uris: [],
        grant_types: ['client_credentials'],
        response_types: [],
        id_token_signed_response_alg: 'ES256',
      },
    ],
    claims: { openid: ['sub'], email: ['email', 'email_verified'] },
    findAccount: (_ctx, id) => ({ accountId: id, claims: async () => ({ sub: id, ...USERS[id] }) }),
    extraTokenClaims: async (_ctx, token) => {
      const user = 'accountId' in token && typeof token.accountId === 'string' ? USERS[token.accountId] : undefined
      return user?.tells === 'token' ? { email: user.email, email_verified: user.email_verified } : undefined
    },
    // Its test pages offer no choice of accounts.
    discovery: { prompt_values_supported: ['none', 'login', 'consent'] },
    pkce: { required: () => true },
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: async () => AUDIENCE,
        useGrantedResource: async () => true,
        getResourceServerInfo: async () => ({
          scope: 'api:session',
          audience: AUDIENCE,
          accessTokenTTL: 300,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'ES256' } },
        }),
      },
    },
  })
}

/** RFC 6749 §4.4 */
async function admitProgram(issuer: string): Promise<string> {
  const authorization = `Basic ${btoa(`${PROGRAM.id}:${encodeURIComponent(PROGRAM.secret)}`)}`
  const body = new URLSearchParams({ grant_type: 'client_credentials', resource: AUDIENCE })
  const response = await fetch(`${issuer}/token`, { method: 'POST', body, headers: { authorization } })
  if (!response.ok) throw new Error(`the token endpoint responded with ${response.status}: ${await response.text()}`)
  return ((await response.json()) as { access_token: string }).access_token
}

async function logIn(issuer: string, user: string): Promise<{ access_token: string; id_token: string }> {
  const cookies = new Map<string, string>()
  const visit = async (url: string, form?: Record<string, string>): Promise<Response> => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const sent = form ? { method: 'POST', body: new URLSearchParams(form) } : {}
    const response = await fetch(url, { ...sent, headers: { cookie }, redirect: 'manual' })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      cookies.set(name, value)
    }
    return response
  }
  const verifier = 'a code verifier that is long enough for RFC 7636 §4.1'.replaceAll(/[^\w]/g, '-')
  const query = new URLSearchParams({
    client_id: 'web',
    response_type: 'code',
    redirect_uri: REDIRECT,
    scope: 'openid email api:session',
    resource: AUDIENCE,
    code_challenge_method: 'S256',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
  })
  let response = await visit(`${issuer}/auth?${query}`)
  for (let step = 0; step < 10; step += 1) {
    const location = response.headers.get('location')
    if (location?.startsWith(REDIRECT)) {
      const code = new URL(location).searchParams.get('code') ?? ''
      return await exchangeCode(issuer, code, verifier)
    }
    if (location) response = await visit(new URL(location, issuer).href)
    else {
      const page = await response.text()
      const prompt = /name="prompt" value="(login|consent)"/.exec(page)?.[1] ?? ''
      response = await visit(response.url, { prompt, login: user, password: 'x' })
    }
  }
  throw new Error('the provider rejects the login')
}

async function exchangeCode(
  issuer: string,
  code: string,
  verifier: string,
): Promise<{ access_token: string; id_token: string }> {
  const body = new URLSearchParams({
    grant_type: 'authorization_code',
    client_id: 'web',
    code,
    redirect_uri: REDIRECT,
    code_verifier: verifier,
    resource: AUDIENCE,
  })
  const response = await fetch(`${issuer}/token`, { method: 'POST', body })
  if (!response.ok) throw new Error(`the token endpoint responded with ${response.status}: ${await response.text()}`)
  return (await response.json()) as { access_token: string; id_token: string }
}
