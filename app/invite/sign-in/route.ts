import { z } from 'zod'
import { foreignForm, seeOther } from '#app/(operator)/form-answers.ts'
import { resource } from '#lib/api/resource.ts'
import { isOwnForm } from '#lib/auth/form-origin.ts'
import { type BrowserClient, beginSignIn, finishSignIn } from '#lib/auth/oidc/authorization.ts'
import { requireProvider, verifyAccessToken } from '#lib/auth/oidc/sign-in.ts'
import { acceptInvite } from '#lib/directory/contractors/acceptance.ts'
import { changeContractor } from '#lib/directory/contractors/changes.ts'
import { findContractor } from '#lib/directory/contractors/contractors.ts'
import { joinIdentity, verifyOtherSession } from '#lib/directory/joined-identities.ts'
import { admitUser } from '#lib/directory/users.ts'
import { readJson } from '#lib/http/body.ts'
import { requireRequestLeft } from '#lib/http/request-limit.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { directoryContext, type Service, service } from '#lib/server/services.ts'
import { type InviteSignIn, keepSignIn, takeSignIn } from '../sign-in-cookie.ts'

const BODY = z.object(
  {
    token: z.string('required').min(1, 'required').max(200),
    /** to choose another account, even if the browser is signed in at the provider */
    choosesAccount: z.boolean().default(false),
    /** the session of the wallet to add to a contractor that has accepted; without it, the invite is accepted */
    wallet: z.object({ contractor: z.string().max(100), session: z.string().max(2_000) }).optional(),
  },
  'token required',
)

/**
 * Accepts an invite, or adds a wallet to its contractor, with a sign-in at the identity provider: POST returns the URL of
 * the provider, GET is the redirect URI.
 */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource(
  {
    POST: async (request) => {
      requireRequestLeft(request.headers, 'session')
      const { settings } = await service()
      // Otherwise another site could have its own wallet added to the contractor in this browser.
      if (!isOwnForm(request.headers, settings.publicUrl)) return foreignForm(settings.publicUrl)
      const { token, choosesAccount, wallet } = await readJson(request, BODY, { isOpen: true })
      const { location, ...pending } = await beginSignIn(browserClient(settings), { choosesAccount })
      await keepSignIn(settings.publicUrl, { ...pending, token, wallet })
      return { location }
    },
    GET: async (request) => {
      requireRequestLeft(request.headers, 'session')
      const running = await service()
      const pending = await takeSignIn(running.settings.publicUrl)
      if (!pending) return seeOther('/invite/late')
      try {
        await finishBy(running, pending, new URL(request.url))
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
async function finishBy(running: Service, pending: InviteSignIn, returned: URL): Promise<void> {
  const client = browserClient(running.settings)
  const accessToken = await finishSignIn(client, pending, returned)
  const { identity } = await verifyAccessToken(client.provider, accessToken, running.now())
  const { wallet } = pending
  const other = wallet && (await verifyOtherSession(running.settings.sessions, wallet.session, running.now()))
  const context = await directoryContext(running)
  const user = await admitUser(context, identity)
  if (!wallet || !other) {
    await acceptInvite({ ...context, user }, pending.token)
    return
  }
  // Otherwise the wallet would join an organisation that is not the contractor's.
  await findContractor({ ...context, user }, wallet.contractor)
  const joined = await joinIdentity({ ...context, user }, other)
  await changeContractor({ ...context, user: joined }, { id: wallet.contractor, changes: { address: other.sub } })
}

/** @throws Refusal idp-not-configured */
function browserClient({ provider: configured, publicUrl }: Service['settings']): BrowserClient {
  const provider = requireProvider(configured)
  const { clientId } = provider
  if (clientId === undefined)
    throw new Refusal('idp-not-configured', 'no client of the identity provider is configured')
  return { provider, clientId, redirectUri: `${publicUrl}/invite/sign-in` }
}
