import { viewerFile } from '#lib/api/viewer/files.ts'
import { resource, routeNotFound } from '#lib/http/resource.ts'

/** The scripts and styles of the viewer. Their path carries a version, so that browsers keep them. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource<RouteContext<'/docs/[version]/[file]'>>(
  {
    GET: async (request, { params }) => {
      const { version, file } = await params
      return (await viewerFile(request, version, file)) ?? routeNotFound(request)
    },
  },
  { readers: 'ourselves' },
)
