import { lockBatch } from '#lib/directory/batch-locking.ts'
import { identifyUser, requireEmployer } from '#lib/directory/user.ts'
import { resource } from '#lib/http/resource.ts'
import { service } from '#lib/server/services.ts'

/** Locks a batch: it is ready to be sent. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource<RouteContext<'/api/batches/[id]/ready'>>({
  POST: async (request, { params }) => {
    const desk = await service()
    const employer = requireEmployer(await identifyUser(desk, request))
    return lockBatch(await desk.database(), employer, (await params).id, desk.now())
  },
})
