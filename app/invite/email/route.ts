import { z } from 'zod'
import { foreignForm } from '#app/(operator)/form-answers.ts'
import { resource } from '#lib/api/resource.ts'
import { isOwnForm } from '#lib/auth/form-origin.ts'
import { requireProvider, signInWithProvider } from '#lib/auth/oidc/sign-in.ts'
import { askTestIssuer } from '#lib/auth/oidc/test-issuer.ts'
import { admitSession } from '#lib/directory/users.ts'
import { readJson } from '#lib/http/body.ts'
import { requireRequestLeft } from '#lib/http/request-limit.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { service } from '#lib/server/services.ts'
import { emailField } from '#lib/text/email.ts'

const BODY = z.object({ email: emailField }, 'email required')

/**
 * Creates a session for any email with the embedded ledger's test issuer. With another provider this route doesn't exist.
 */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource(
  {
    POST: async (request) => {
      requireRequestLeft(request.headers, 'session')
      const running = await service()
      const { settings, now } = running
      if (!settings.testIssuer) throw new Refusal('idp-not-configured', 'this service has no test issuer')
      // Otherwise any page in the user's browser could sign in as anyone.
      if (!isOwnForm(request.headers, settings.publicUrl)) return foreignForm(settings.publicUrl)
      const { email } = await readJson(request, BODY, { isOpen: true })
      const context = { provider: requireProvider(settings.provider), sessions: settings.sessions }
      const token = await askTestIssuer(settings.testIssuer, email)
      return admitSession(running, await signInWithProvider(context, token, now()))
    },
  },
  { readers: 'ourselves' },
)
