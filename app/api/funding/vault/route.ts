import { identifyCaller } from '#lib/auth/caller.ts'
import { requireVault } from '#lib/funding/vault.ts'
import { resource } from '#lib/http/resource.ts'
import { service } from '#lib/server/services.ts'

/** What backs the confidential balances: the vault's address, and how much of the asset it holds. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource({
  GET: async (request) => {
    const { settings, vault, now } = await service()
    await identifyCaller(settings.sessions, request, now())
    return requireVault(vault).read()
  },
})
