import { identifyCaller } from '#lib/auth/caller.ts'
import { resource } from '#lib/http/resource.ts'
import { readJob } from '#lib/relay/jobs.ts'
import { service } from '#lib/server/services.ts'

/** A batch job of the caller's, with the results so far. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource<RouteContext<'/api/batch/[jobId]'>>({
  GET: async (request, { params }) => {
    const { settings, database, now } = await service()
    const caller = await identifyCaller(settings.sessions, request, now())
    return readJob(await database(), caller, (await params).jobId)
  },
})
