import { resource, routeNotFound } from '#lib/api/resource.ts'
import { sdkFile } from '#lib/api/sdk-package.ts'

/** The tarball to which /sdk redirects. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource({
  GET: async (request) => (await sdkFile(request)) ?? routeNotFound(request),
})
