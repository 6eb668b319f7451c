import { EVENT_OPERATIONS } from '#lib/api/events.ts'
import { routes } from '#lib/api/routes.ts'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = routes('/events', EVENT_OPERATIONS)
