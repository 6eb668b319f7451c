import { resource } from '#lib/http.ts'
import { readiness } from '#lib/readiness.ts'
import { service } from '#lib/service.ts'

/** Readiness: database, ledger and sponsor, a field each. 503 when one of them is not there. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource({
  GET: async () => {
    const found = await readiness(await service())
    return Response.json(found, found.ok ? { status: 200 } : { status: 503, headers: { 'Retry-After': '5' } })
  },
})
