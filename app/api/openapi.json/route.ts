import { OPERATIONS } from '#lib/api/operations.ts'
import { routes } from '#lib/api/routes.ts'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = routes('/openapi.json', OPERATIONS)
