import { resource } from '#lib/api/resource.ts'

/** The paths that no other route matches: 404 as JSON, for every method. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource({}, { route: 'none' })
