import { changeContractor, removeContractor } from '#lib/directory/contractors/changes.ts'
import { findContractor, requireAccess } from '#lib/directory/contractors/contractors.ts'
import { contractorChanges } from '#lib/directory/contractors/schema.ts'
import { identifyUser, requireEmployer } from '#lib/directory/user.ts'
import { readJson } from '#lib/http/body.ts'
import { resource } from '#lib/http/resource.ts'
import { service } from '#lib/server/services.ts'

/** One contractor, for its employer and for itself. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource<RouteContext<'/api/contractors/[id]'>>({
  GET: async (request, { params }) => {
    const desk = await service()
    const user = await identifyUser(desk, request)
    const look = { db: await desk.database(), accounts: desk.registry, now: desk.now() }
    return findContractor(look, user, (await params).id)
  },
  PATCH: async (request, { params }) => {
    const desk = await service()
    const user = await identifyUser(desk, request)
    const { id } = await params
    requireAccess(user, id)
    const changes = await readJson(request, contractorChanges)
    return changeContractor(await desk.database(), desk.registry, user, id, changes, desk.now())
  },
  DELETE: async (request, { params }) => {
    const desk = await service()
    const employer = requireEmployer(await identifyUser(desk, request))
    return removeContractor(await desk.database(), employer, (await params).id, desk.now())
  },
})
