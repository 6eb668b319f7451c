import { readBatchProgress } from '#lib/directory/batches.ts'
import { identifyUser, requireEmployer } from '#lib/directory/user.ts'
import { resource } from '#lib/http/resource.ts'
import { service } from '#lib/server/services.ts'
import { settleByLooking } from '#lib/sponsor/looking.ts'

/** How far a batch has come, for polling. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource<RouteContext<'/api/batches/[id]/status'>>({
  GET: async (request, { params }) => {
    const desk = await service()
    const employer = requireEmployer(await identifyUser(desk, request))
    const db = await desk.database()
    await settleByLooking(db, desk.sponsor, [employer.organisation])
    return readBatchProgress(db, employer, (await params).id)
  },
})
