import { removeBatch } from '#lib/directory/batch-removal.ts'
import { findBatch } from '#lib/directory/batches.ts'
import { identifyUser, requireEmployer } from '#lib/directory/user.ts'
import { resource } from '#lib/http/resource.ts'
import { service } from '#lib/server/services.ts'
import { settleByLooking } from '#lib/sponsor/looking.ts'

/** A batch with its payouts. It may be removed while nothing of it has been sent. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource<RouteContext<'/api/batches/[id]'>>({
  GET: async (request, { params }) => {
    const desk = await service()
    const employer = requireEmployer(await identifyUser(desk, request))
    const db = await desk.database()
    await settleByLooking(db, desk.sponsor, [employer.organisation])
    return findBatch(db, employer, (await params).id)
  },
  DELETE: async (request, { params }) => {
    const desk = await service()
    const employer = requireEmployer(await identifyUser(desk, request))
    return removeBatch({ db: await desk.database(), employer, now: desk.now() }, (await params).id)
  },
})
