import { INVITE_OPERATIONS } from '#lib/api/invites.ts'
import { routes } from '#lib/api/routes.ts'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = routes('/contractors/{id}/invite', INVITE_OPERATIONS)
