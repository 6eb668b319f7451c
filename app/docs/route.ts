import { referencePage } from '#lib/api/viewer/page.ts'
import { resource } from '#lib/http/resource.ts'
import { service } from '#lib/server/services.ts'

/** The reference of the interface: a viewer for the OpenAPI document, from our own origin. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource(
  { GET: async (request) => referencePage(request, await service()) },
  { readers: 'ourselves' },
)
