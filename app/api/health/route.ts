import { resource } from '#lib/http/resource.ts'
import { service } from '#lib/server/services.ts'

/** Liveness, and what is configured. Touches neither database nor network. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource({
  GET: async () => {
    const { settings } = await service()
    return {
      ok: true,
      network: settings.network.name,
      idp: settings.provider !== undefined,
      relay: settings.batch !== undefined,
      sponsor: settings.sponsor !== undefined,
    }
  },
})
