import { routes } from '#lib/api/routes.ts'
import { SERVICE_OPERATIONS } from '#lib/api/service.ts'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = routes('/metrics', SERVICE_OPERATIONS)
