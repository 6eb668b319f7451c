import { cancelPayout } from '#lib/directory/payouts/cancelling.ts'
import { identifyUser, requireEmployer } from '#lib/directory/user.ts'
import { resource } from '#lib/http/resource.ts'
import { service } from '#lib/server/services.ts'

/** Cancels a payout that is not on its way. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource<RouteContext<'/api/payouts/[id]'>>({
  DELETE: async (request, { params }) => {
    const desk = await service()
    const employer = requireEmployer(await identifyUser(desk, request))
    return cancelPayout({ db: await desk.database(), employer, now: desk.now() }, (await params).id)
  },
})
