import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'
import { serveLocally } from '../support/local-server.ts'

export interface TestProvider {
  /** Address of the server, without a path. */
  origin: string
  /** The served documents, by path. A function may respond in any way; nothing hangs. */
  documents: Map<string, { status?: number; body?: unknown; location?: string } | 'hang'>
  /** The requested paths, in order. */
  requests: string[]
  close(): Promise<void>
}

/** An HTTP server of documents in place of a provider's discovery and keys. */
export async function startTestProvider(): Promise<TestProvider> {
  const listening = await serveLocally((request, response) => {
    const path = request.url ?? '/'
    provider.requests.push(path)
    const document = provider.documents.get(path)
    if (document === 'hang') return
    if (document?.location) response.setHeader('location', document.location)
    response.setHeader('content-type', 'application/json')
    response.statusCode = document ? (document.status ?? 200) : 404
    response.end(typeof document?.body === 'string' ? document.body : JSON.stringify(document?.body ?? {}))
  })
  const provider: TestProvider = {
    origin: listening.url,
    documents: new Map(),
    requests: [],
    close: listening.close,
  }
  return provider
}

export interface ProviderKey {
  jwk: JWK
  sign(claims: object, header?: object): Promise<string>
}

/** A key of a provider: its public JWK, and tokens signed with it. A header of `undefined` leaves a field out. */
export async function providerKey(kid: string, alg = 'ES256'): Promise<ProviderKey> {
  const { publicKey, privateKey } = await generateKeyPair(alg)
  const jwk = { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' }
  return {
    jwk,
    sign: (claims, header = {}) =>
      new SignJWT({ ...claims }).setProtectedHeader({ alg, typ: 'at+jwt', kid, ...header }).sign(privateKey),
  }
}
