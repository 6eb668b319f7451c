import { CALL_OPERATIONS } from '#lib/api/calls.ts'
import { routes } from '#lib/api/routes.ts'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = routes('/calls', CALL_OPERATIONS)
