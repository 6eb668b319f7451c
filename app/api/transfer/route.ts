import { routes } from '#lib/api/routes.ts'
import { TRANSFER_OPERATIONS } from '#lib/api/transfers.ts'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = routes('/transfer', TRANSFER_OPERATIONS)
