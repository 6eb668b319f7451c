import { BATCH_OPERATIONS } from '#lib/api/batches.ts'
import { routes } from '#lib/api/routes.ts'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = routes('/batches/{id}', BATCH_OPERATIONS)
