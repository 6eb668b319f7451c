import { createServer } from 'node:http'
import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'

export interface TestProvider {
  /** Address of the server, without a path. */
  origin: string
  /** What is served, by path. A function may answer as it likes; nothing hangs. */
  documents: Map<string, { status?: number; body?: unknown; location?: string } | 'hang'>
  /** Paths asked for, in order. */
  requests: string[]
  close(): Promise<void>
}

/** An HTTP server of documents, to stand for a provider's discovery and keys. */
export async function startTestProvider(): Promise<TestProvider> {
  const provider: TestProvider = { origin: '', documents: new Map(), requests: [], close: async () => undefined }
  const listener = createServer((request, response) => {
    const path = request.url ?? '/'
    provider.requests.push(path)
    const document = provider.documents.get(path)
    if (document === 'hang') return
    if (document?.location) response.setHeader('location', document.location)
    response.setHeader('content-type', 'application/json')
    response.statusCode = document ? (document.status ?? 200) : 404
    response.end(typeof document?.body === 'string' ? document.body : JSON.stringify(document?.body ?? {}))
  })
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  const address = listener.address()
  if (typeof address !== 'object' || !address) throw new Error('not listening')
  provider.origin = `http://127.0.0.1:${address.port}`
  provider.close = () =>
    new Promise((resolve) => {
      listener.close(() => resolve())
      listener.closeAllConnections()
    })
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
