import { describeMe, meChanges, nameOwnOrganisation } from '#lib/directory/me.ts'
import { identifyUser } from '#lib/directory/user.ts'
import { readJson } from '#lib/http/body.ts'
import { resource } from '#lib/http/resource.ts'
import { service } from '#lib/server/services.ts'

/** Who the caller is, in which roles, and the name of its organisation. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource({
  GET: async (request) => {
    const desk = await service()
    const user = await identifyUser(desk, request)
    return describeMe(await desk.database(), desk.settings.invites, user, desk.now())
  },
  PATCH: async (request) => {
    const desk = await service()
    const user = await identifyUser(desk, request)
    const { orgName } = await readJson(request, meChanges)
    const db = await desk.database()
    const renamed = await nameOwnOrganisation(db, user, orgName, desk.now())
    return describeMe(db, desk.settings.invites, renamed, desk.now())
  },
})
