import { resource, routeNotFound } from '#lib/api/resource.ts'
import { redirectToSdk } from '#lib/api/sdk-package.ts'

/** The package for frontends, as this service's version packs it: `npm i https://…/sdk`. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource({
  GET: async (request) => (await redirectToSdk()) ?? routeNotFound(request),
})
