import { ARCHIVE_OPERATIONS } from '#lib/api/archive.ts'
import { routes } from '#lib/api/routes.ts'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = routes(
  '/archive/v1/tokens/{contract}/registry',
  ARCHIVE_OPERATIONS,
)
