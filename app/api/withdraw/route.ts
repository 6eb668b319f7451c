import { identifyCaller } from '#lib/auth/caller.ts'
import { Refusal } from '#lib/http/refusal.ts'
import { resource } from '#lib/http/resource.ts'
import { service } from '#lib/server/services.ts'

/** Never done here: withdraw takes a key that only the user's device holds. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource({
  POST: async (request) => {
    const { settings, now } = await service()
    await identifyCaller(settings.sessions, request, now())
    throw new Refusal(
      'not-wired',
      'withdraw is not wired to the API: run it from the command-line client tooling, on the device that holds the keys',
    )
  },
})
