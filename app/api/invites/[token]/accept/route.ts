import { acceptInvite } from '#lib/directory/invites/acceptance.ts'
import { identifyUser } from '#lib/directory/user.ts'
import { resource } from '#lib/http/resource.ts'
import { service } from '#lib/server/services.ts'

/** Links the caller to the contractor record that the invite is for. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource<RouteContext<'/api/invites/[token]/accept'>>({
  POST: async (request, { params }) => {
    const desk = await service()
    const user = await identifyUser(desk, request)
    const given = { registry: desk.registry, invites: desk.settings.invites }
    return acceptInvite(await desk.database(), given, user, (await params).token, desk.now())
  },
})
