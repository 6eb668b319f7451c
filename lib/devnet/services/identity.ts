import { hash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, type JWK, SignJWT } from 'jose'
import { z } from 'zod'
import { isLoopback } from '#lib/config/shapes.ts'
import { foldEmail, isEmail } from '#lib/text/email.ts'
import { readBody } from './body.ts'

const TOKEN_TTL = 3600
const LARGEST_BODY = 16 * 1024

const tokenRequest = z
  .object({
    sub: z
      .string()
      .regex(/^[\x20-\x7e]{1,255}$/, 'sub must be 1 to 255 printable ASCII characters')
      .optional(),
    email: z.string().refine(isEmail, 'email must be an email address').optional(),
  })
  .transform(({ sub, email }, context) => {
    // An email is one person, at the API and on pages. A sub is ASCII; an email may be in any script.
    const subject = sub ?? (email === undefined ? undefined : hash('sha256', foldEmail(email)))
    if (subject !== undefined) return { sub: subject, email }
    context.addIssue('sub or email is required')
    return z.NEVER
  })

/** A new private key for `identityIssuer`. Keep it: tokens from an earlier run are valid only with the same key. */
export async function generateIdentityKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair('ES256', { extractable: true })
  return await exportJWK(privateKey)
}

interface IdentityIssuerSettings {
  /** URL of the handler, without a trailing slash: `http://localhost:8000/idp`. */
  issuer: string
  audience: string
  /** Private P-256 key. */
  key: JWK
  /** the origin of the service, whose pages may request tokens */
  publicUrl?: string
}

/**
 * A small OpenID Connect provider for test networks: it issues any access token that a program on this machine
 * requests. `GET /.well-known/openid-configuration`, `GET /jwks`, and `POST /token { sub?, email? }`, which answers `{
 * access_token, token_type, expires_in }`; all below the issuer's own path, which the handler expects to see. Without `sub`, it
 * follows from the email.
 */
export function identityIssuer(
  settings: IdentityIssuerSettings,
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  const root = new URL(settings.issuer).pathname.replace(/\/$/, '')
  const signingKey = keyWithId(settings.key)
  return async (request, response) => {
    const [path = ''] = (request.url ?? '').split('?', 1)
    const route = path.startsWith(`${root}/`) ? `${request.method} ${path.slice(root.length)}` : undefined
    const isToken = path === `${root}/token`
    response.setHeaders(
      isToken ? readersOfTokens(settings, request) : new Headers({ 'access-control-allow-origin': '*' }),
    )
    if (request.method === 'OPTIONS') answer(response, 204)
    else if (route === 'GET /.well-known/openid-configuration') answer(response, 200, discovery(settings.issuer))
    else if (route === 'GET /jwks') answer(response, 200, { keys: [publicPart(await signingKey)] })
    else if (route === 'POST /token') await answerToken(settings, await signingKey, request, response)
    else answer(response, 404, { error: 'not_found' })
  }
}

async function answerToken(
  { issuer, audience }: IdentityIssuerSettings,
  key: JWK,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { host = '', origin, 'content-type': type = '' } = request.headers
  if (
    !isLoopbackUrl(`http://${host}`) ||
    (origin !== undefined && !response.hasHeader('access-control-allow-origin'))
  ) {
    answer(response, 403, { error: 'access_denied', error_description: 'only this machine may request tokens' })
    return
  }
  if (type.split(';', 1)[0]?.trim().toLowerCase() !== 'application/json') {
    answer(response, 415, { error: 'invalid_request', error_description: 'the body must be application/json' })
    return
  }
  const parsed = tokenRequest.safeParse(await readJson(request))
  if (!parsed.success) {
    const error_description = parsed.error.issues[0]?.message ?? 'not an object'
    answer(response, 400, { error: 'invalid_request', error_description })
    return
  }
  const { sub, email } = parsed.data
  const access_token = await new SignJWT(email === undefined ? {} : { email, email_verified: true })
    .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid: key.kid ?? '' })
    .setIssuer(issuer)
    .setAudience(audience)
    .setSubject(sub)
    .setJti(crypto.randomUUID())
    .setIssuedAt()
    .setExpirationTime(`${TOKEN_TTL}s`)
    .sign(await importJWK(key, 'ES256'))
  answer(response, 200, { access_token, token_type: 'Bearer', expires_in: TOKEN_TTL })
}

/**
 * CORS of the tokens: pages of this machine and of the service. A token can sign in as anyone, so no other page may
 * read one.
 */
function readersOfTokens({ publicUrl }: IdentityIssuerSettings, { headers: { origin } }: IncomingMessage): Headers {
  const headers = new Headers({ vary: 'Origin' })
  if (origin && (isLoopbackUrl(origin) || origin === publicUrl)) headers.set('access-control-allow-origin', origin)
  return headers
}

const isLoopbackUrl = (address: string): boolean => isLoopback(URL.parse(address)?.hostname ?? '')

async function keyWithId(key: JWK): Promise<JWK> {
  return { ...key, kid: await calculateJwkThumbprint(key) }
}

/** Members are listed by name, so that the private part `d` is never included. */
function publicPart({ kty, crv, x, y, kid }: JWK): JWK {
  return { kty, crv, x, y, kid, alg: 'ES256', use: 'sig' } as JWK
}

function discovery(issuer: string): Record<string, unknown> {
  return {
    issuer,
    jwks_uri: `${issuer}/jwks`,
    token_endpoint: `${issuer}/token`,
    response_types_supported: ['token'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES256'],
  }
}

/** The JSON body; undefined if it is invalid JSON, too large, or incomplete. */
async function readJson(request: IncomingMessage): Promise<unknown> {
  try {
    return JSON.parse((await readBody(request, LARGEST_BODY)) ?? '')
  } catch {
    return undefined
  }
}

function answer(response: ServerResponse, status: number, body?: object): void {
  response.writeHead(status, {
    'access-control-allow-methods': 'GET, POST, OPTIONS',
    'access-control-allow-headers': 'authorization, content-type',
    'cache-control': 'no-store',
    ...(body && { 'content-type': 'application/json' }),
  })
  response.end(body && JSON.stringify(body))
}
