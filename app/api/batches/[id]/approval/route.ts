import { routes } from '#lib/api/routes.ts'
import { RUN_OPERATIONS } from '#lib/api/runs.ts'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = routes('/batches/{id}/approval', RUN_OPERATIONS)
