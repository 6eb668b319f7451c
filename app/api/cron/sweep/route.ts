import { requireScheduler } from '#lib/auth/scheduler.ts'
import { resource } from '#lib/http/resource.ts'
import { sweepService } from '#lib/server/relay.ts'
import { service } from '#lib/server/services.ts'

/** Does what nobody waits for any more, where no process lasts that would: a scheduler calls it. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource({
  GET: async (request) => {
    const running = await service()
    requireScheduler(running.settings.cronSecret, request)
    return sweepService(running)
  },
})
