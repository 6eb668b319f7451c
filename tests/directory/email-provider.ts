import { providerKey, startTestProvider } from '../auth/provider-server.ts'
import { ISSUER, NOW } from '../support/directory.ts'
import type { TestService } from '../support/test-service.ts'

/** A separate identity provider that states for each user whether the email is verified. */
export interface EmailProvider {
  /** the variables of a service that trusts the provider */
  variables: { IDP_JWKS_URL: string }
  /** Signs a user in with a token from the provider. Resolves to the session. */
  signIn(service: TestService<'fake'>, user: { sub: string; email: string; verified: boolean }): Promise<string>
  close(): Promise<void>
}

export async function startEmailProvider(): Promise<EmailProvider> {
  const server = await startTestProvider()
  const key = await providerKey('k1')
  server.documents.set('/jwks', { body: { keys: [key.jwk] } })
  const iat = NOW.getTime() / 1000
  return {
    variables: { IDP_JWKS_URL: `${server.origin}/jwks` },
    signIn: async (service, { sub, email, verified }) => {
      const claims = { iss: ISSUER, aud: 'payroll', sub, iat, exp: iat + 600, email, email_verified: verified }
      const { status, body } = await service.ask('POST', '/auth/idp', { body: { token: await key.sign(claims) } })
      if (status !== 200) throw new Error(`no session but ${status} ${JSON.stringify(body)}`)
      return String(body.session)
    },
    close: server.close,
  }
}
