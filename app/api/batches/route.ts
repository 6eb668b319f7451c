import { createBatch, listBatches, newBatch } from '#lib/directory/batches.ts'
import { becomeEmployer, identifyUser, requireEmployer, requireNoMereContractor } from '#lib/directory/user.ts'
import { readJson, readQuery } from '#lib/http/body.ts'
import { pageQuery, pageRequest, presentPage } from '#lib/http/paging.ts'
import { resource } from '#lib/http/resource.ts'
import { service } from '#lib/server/services.ts'

/** The employer's batches, newest first, and new ones. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource({
  GET: async (request) => {
    const desk = await service()
    const employer = requireEmployer(await identifyUser(desk, request))
    const page = pageRequest(readQuery(request, pageQuery))
    const { items, next } = await listBatches(await desk.database(), employer, page)
    return presentPage(request, { batches: items }, next)
  },
  POST: async (request) => {
    const desk = await service()
    const user = await identifyUser(desk, request)
    requireNoMereContractor(user)
    const given = await readJson(request, newBatch)
    const db = await desk.database()
    return createBatch(db, await becomeEmployer(db, user, desk.now()), given, desk.now())
  },
})
