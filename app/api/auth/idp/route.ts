import { providerToken, requireProvider, signInWithProvider } from '#lib/auth/oidc/sign-in.ts'
import { admitSession } from '#lib/directory/user.ts'
import { readJson } from '#lib/http/body.ts'
import { resource } from '#lib/http/resource.ts'
import { service } from '#lib/server/services.ts'

/** Exchanges an access token of the identity provider for a session. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource({
  POST: async (request) => {
    const desk = await service()
    const { settings, now } = desk
    const provider = requireProvider(settings.provider)
    const { token } = await readJson(request, providerToken)
    return admitSession(desk, await signInWithProvider({ provider, sessions: settings.sessions }, token, now()))
  },
})
