import { z } from 'zod'
import { seeOther } from '#app/(operator)/form-answers.ts'
import { resource } from '#lib/api/resource.ts'
import { type BrowserClient, beginSignIn, finishSignIn } from '#lib/auth/oidc/authorization.ts'
import { requireProvider, verifyAccessToken } from '#lib/auth/oidc/sign-in.ts'
import { acceptInvite } from '#lib/directory/contractors/acceptance.ts'
import { admitUser } from '#lib/directory/users.ts'
import { readJson } from '#lib/http/body.ts'
import { requireRequestLeft } from '#lib/http/request-limit.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { directoryContext, type Service, service } from '#lib/server/services.ts'
import { type InviteSignIn, keepSignIn, takeSignIn } from '../sign-in-cookie.ts'

const BODY = z.object(
  {
    token: z.string('token required').min(1, 'token required').max(200),
    /** to choose another account, even if the browser is signed in at the provider */
    choosesAccount: z.boolean().default(false),
  },
  'token required',
)

/**
 * Accepts an invite with a sign-in at the identity provider: POST returns the URL of the provider, GET is the redirect
 * URI.
 */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource(
  {
    POST: async (request) => {
      requireRequestLeft(request.headers, 'session')
      const { token, choosesAccount } = await readJson(request, BODY, { isOpen: true })
      const { settings } = await service()
      const { location, ...pending } = await beginSignIn(browserClient(settings), { choosesAccount })
      await keepSignIn(settings.publicUrl, { ...pending, token })
      return { location }
    },
    GET: async (request) => {
      requireRequestLeft(request.headers, 'session')
      const running = await service()
      const pending = await takeSignIn(running.settings.publicUrl)
      if (!pending) return seeOther('/invite/late')
      try {
        await acceptBy(running, pending, new URL(request.url))
        return seeOther(`/invite/${encodeURIComponent(pending.token)}`)
      } catch (error) {
        if (!(error instanceof Refusal)) throw error
        return seeOther(`/invite/${encodeURIComponent(pending.token)}?problem=${error.code}`)
      }
    },
  },
  { readers: 'ourselves' },
)

/** @throws Refusal */
async function acceptBy(running: Service, pending: InviteSignIn, returned: URL): Promise<void> {
  const client = browserClient(running.settings)
  const accessToken = await finishSignIn(client, pending, returned)
  const { identity } = await verifyAccessToken(client.provider, accessToken, running.now())
  const context = await directoryContext(running)
  const user = await admitUser(context, identity)
  await acceptInvite({ ...context, user }, pending.token)
}

/** @throws Refusal idp-not-configured */
function browserClient({ provider: configured, publicUrl }: Service['settings']): BrowserClient {
  const provider = requireProvider(configured)
  const { clientId } = provider
  if (clientId === undefined)
    throw new Refusal('idp-not-configured', 'no client of the identity provider is configured')
  return { provider, clientId, redirectUri: `${publicUrl}/invite/sign-in` }
}
