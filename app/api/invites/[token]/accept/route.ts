import { INVITE_OPERATIONS } from '#lib/api/invites.ts'
import { routes } from '#lib/api/routes.ts'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = routes('/invites/{token}/accept', INVITE_OPERATIONS)
