import { ME_OPERATIONS } from '#lib/api/me.ts'
import { routes } from '#lib/api/routes.ts'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = routes('/me/identities/{kind}', ME_OPERATIONS)
