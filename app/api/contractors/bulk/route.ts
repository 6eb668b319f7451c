import { importContractors } from '#lib/directory/contractors/import.ts'
import { contractorRows } from '#lib/directory/contractors/schema.ts'
import { becomeEmployer, identifyUser, requireNoMereContractor } from '#lib/directory/user.ts'
import { readJson } from '#lib/http/body.ts'
import { resource } from '#lib/http/resource.ts'
import { service } from '#lib/server/services.ts'

/** Makes many contractors at once; rows that cannot be contractors come back as errors. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource({
  POST: async (request) => {
    const desk = await service()
    const user = await identifyUser(desk, request)
    requireNoMereContractor(user)
    const { rows } = await readJson(request, contractorRows)
    const db = await desk.database()
    const employer = await becomeEmployer(db, user, desk.now())
    return importContractors(db, desk.registry, employer, rows, desk.now())
  },
})
