import { CONTRACTOR_OPERATIONS } from '#lib/api/contractors.ts'
import { routes } from '#lib/api/routes.ts'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = routes('/contractors/bulk', CONTRACTOR_OPERATIONS)
