import { routes } from '#lib/api/routes.ts'
import { WEBHOOK_OPERATIONS } from '#lib/api/webhooks.ts'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = routes('/webhooks/{id}/test', WEBHOOK_OPERATIONS)
