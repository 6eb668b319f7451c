import { resource, routeNotFound } from '#lib/api/resource.ts'
import { redirectToSdk } from '#lib/api/sdk-package.ts'

/** The package for frontends, packed from this service's version: `npm i https://…/sdk`. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource({
  GET: async (request) => (await redirectToSdk()) ?? routeNotFound(request),
})
