import { DEVICE_OPERATIONS } from '#lib/api/device.ts'
import { routes } from '#lib/api/routes.ts'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = routes('/auditor/disclose', DEVICE_OPERATIONS)
