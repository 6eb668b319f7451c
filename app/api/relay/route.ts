import { RELAY_OPERATIONS } from '#lib/api/relay.ts'
import { routes } from '#lib/api/routes.ts'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = routes('/relay', RELAY_OPERATIONS)
