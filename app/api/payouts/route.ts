import { listPayouts, payoutsQuery, viewerOf } from '#lib/directory/payouts/payouts.ts'
import { identifyUser } from '#lib/directory/user.ts'
import { readQuery } from '#lib/http/body.ts'
import { pageRequest, presentPage } from '#lib/http/paging.ts'
import { resource } from '#lib/http/resource.ts'
import { service } from '#lib/server/services.ts'
import { settleByLooking } from '#lib/sponsor/looking.ts'

/** The payouts that the caller makes and those made out to the caller, newest first. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource({
  GET: async (request) => {
    const desk = await service()
    const viewer = viewerOf(await identifyUser(desk, request))
    const db = await desk.database()
    const query = readQuery(request, payoutsQuery)
    await settleByLooking(db, desk.sponsor, viewer.organisations)
    const { items, ...page } = await listPayouts(db, viewer, query, pageRequest(query))
    return presentPage(request, { payouts: items }, page)
  },
})
