import { PAYOUT_OPERATIONS } from '#lib/api/payouts.ts'
import { routes } from '#lib/api/routes.ts'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = routes('/payouts/{id}', PAYOUT_OPERATIONS)
