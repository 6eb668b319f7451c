import { instructBatch, newInstructions } from '#lib/directory/batch-instructions.ts'
import { identifyUser, requireEmployer } from '#lib/directory/user.ts'
import { readJson } from '#lib/http/body.ts'
import { resource } from '#lib/http/resource.ts'
import { service } from '#lib/server/services.ts'

/** Adds payouts to a batch that is not locked yet. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource<RouteContext<'/api/batches/[id]/instructions'>>({
  POST: async (request, { params }) => {
    const desk = await service()
    const employer = requireEmployer(await identifyUser(desk, request))
    const { instructions } = await readJson(request, newInstructions)
    return instructBatch(await desk.database(), desk.registry, employer, (await params).id, instructions, desk.now())
  },
})
