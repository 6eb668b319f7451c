import { JOB_OPERATIONS } from '#lib/api/jobs.ts'
import { routes } from '#lib/api/routes.ts'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = routes('/batch', JOB_OPERATIONS)
