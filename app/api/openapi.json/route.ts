import { resource } from '#lib/http/resource.ts'
import { openApiDocument } from '#lib/openapi/document.ts'
import { service } from '#lib/server/services.ts'

/** The interface as an OpenAPI document. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource({
  GET: async () => {
    const { settings } = await service()
    return openApiDocument(`${settings.publicUrl}/api`)
  },
})
