import { contractorsQuery, listContractors } from '#lib/directory/contractors/contractors.ts'
import { createContractor } from '#lib/directory/contractors/creation.ts'
import { newContractor } from '#lib/directory/contractors/schema.ts'
import { becomeEmployer, identifyUser, requireEmployer, requireNoMereContractor } from '#lib/directory/user.ts'
import { readJson, readQuery } from '#lib/http/body.ts'
import { pageRequest, presentPage } from '#lib/http/paging.ts'
import { resource } from '#lib/http/resource.ts'
import { service } from '#lib/server/services.ts'

/** The employer's contractors, newest first, and new ones. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource({
  GET: async (request) => {
    const desk = await service()
    const employer = requireEmployer(await identifyUser(desk, request))
    const query = readQuery(request, contractorsQuery)
    const look = { db: await desk.database(), accounts: desk.registry, now: desk.now() }
    const { items, ...page } = await listContractors(look, employer, query, pageRequest(query))
    return presentPage(request, { contractors: items }, page)
  },
  POST: async (request) => {
    const desk = await service()
    const user = await identifyUser(desk, request)
    requireNoMereContractor(user)
    const given = await readJson(request, newContractor)
    const db = await desk.database()
    const employer = await becomeEmployer(db, user, desk.now())
    return createContractor(db, desk.registry, employer, given, desk.now())
  },
})
