import { identifyUser } from '#lib/directory/user.ts'
import { readJson } from '#lib/http/body.ts'
import { resource } from '#lib/http/resource.ts'
import { batchRequest, requireBatchDesk, startJob } from '#lib/relay/jobs.ts'
import { service } from '#lib/server/services.ts'

/** Has a confidential batch run by the relay. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource({
  POST: async (request) => {
    const desk = await service()
    const user = await identifyUser(desk, request)
    const batch = requireBatchDesk(desk.batch)
    const amounts = await readJson(request, batchRequest)
    return startJob(await desk.database(), batch, user, amounts, desk.now())
  },
})
