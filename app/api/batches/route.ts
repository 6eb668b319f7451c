import { batchesQuery, createBatch, listBatches, newBatch } from '#lib/directory/batches.ts'
import { becomeEmployer, identifyUser, requireEmployer, requireNoMereContractor } from '#lib/directory/user.ts'
import { readJson, readQuery } from '#lib/http/body.ts'
import { pageRequest, presentPage } from '#lib/http/paging.ts'
import { resource } from '#lib/http/resource.ts'
import { service } from '#lib/server/services.ts'

/** The employer's batches, newest first, and new ones. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource({
  GET: async (request) => {
    const desk = await service()
    const employer = requireEmployer(await identifyUser(desk, request))
    const query = readQuery(request, batchesQuery)
    const { items, ...page } = await listBatches(await desk.database(), employer, query, pageRequest(query))
    return presentPage(request, { batches: items }, page)
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
