import { resource } from '#lib/api/resource.ts'
import { stellarToml } from '#lib/auth/sep10/stellar-toml.ts'
import { service } from '#lib/server/services.ts'

/** SEP-1. Every origin may read it, even with CORS_ORIGINS set, because wallets run anywhere. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource(
  {
    GET: async () => {
      const { settings } = await service()
      const headers = { 'Content-Type': 'text/plain; charset=utf-8' }
      return new Response(stellarToml(settings.sep10, settings.publicUrl), { headers })
    },
  },
  { readers: 'everybody' },
)
