import { resource, routeNotFound } from '#lib/api/resource.ts'
import { viewerFile } from '#lib/api/viewer/files.ts'

/**
 * The scripts and styles of the viewer. Their path carries a version, so that browsers keep them. Other methods are left to
 * Next, which answers without a body: next.config.ts declares these paths gzip, and a JSON refusal would not be.
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
