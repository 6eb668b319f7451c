import { resource, routeNotFound } from '#lib/api/resource.ts'
import { viewerFile } from '#lib/api/viewer/files.ts'

/**
 * The scripts and styles of the viewer. Their path carries a version, so that browsers keep them. Next answers the other
 * methods, without a body: what is said of these paths in next.config.ts (gzip) would not be true of it.
 */
export const { GET } = resource<RouteContext<'/docs/[version]/[file]'>>(
  {
    GET: async (request, { params }) => {
      const { version, file } = await params
      return (await viewerFile(request, version, file)) ?? routeNotFound(request)
    },
  },
  { readers: 'ourselves' },
)
