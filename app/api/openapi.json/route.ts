import { OPERATIONS } from '#lib/api/interface.ts'
import { routes } from '#lib/api/routes.ts'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = routes('/openapi.json', OPERATIONS)
