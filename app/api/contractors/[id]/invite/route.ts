import { inviteContractor } from '#lib/directory/invites/invites.ts'
import { identifyUser, requireEmployer } from '#lib/directory/user.ts'
import { resource } from '#lib/http/resource.ts'
import { service } from '#lib/server/services.ts'

/** Sends or resends the link by which a contractor accepts. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource<RouteContext<'/api/contractors/[id]/invite'>>({
  POST: async (request, { params }) => {
    const desk = await service()
    const employer = requireEmployer(await identifyUser(desk, request))
    return inviteContractor(await desk.database(), desk.settings, employer, (await params).id, desk.now())
  },
})
