import { FUNDING_OPERATIONS } from '#lib/api/funding.ts'
import { routes } from '#lib/api/routes.ts'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = routes('/funding/faucet', FUNDING_OPERATIONS)
