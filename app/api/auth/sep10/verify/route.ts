import { routes } from '#lib/api/routes.ts'
import { SESSION_OPERATIONS } from '#lib/api/sessions.ts'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = routes('/auth/sep10/verify', SESSION_OPERATIONS)
