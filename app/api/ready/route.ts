import { resource } from '#lib/http/resource.ts'
import { readiness } from '#lib/server/readiness.ts'
import { service } from '#lib/server/services.ts'

/** Readiness: database, ledger and sponsor, a field each. 503 when one of them is not there. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource({
  GET: async () => {
    const found = await readiness(await service())
    return Response.json(found, found.ok ? { status: 200 } : { status: 503, headers: { 'Retry-After': '5' } })
  },
})
