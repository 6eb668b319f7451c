import { resource, routeNotFound } from '#lib/api/resource.ts'
import { viewerFile } from '#lib/api/viewer/files.ts'

/**
 * The scripts and styles of the viewer. Their path contains a version, so that browsers cache them. Next handles other
 * methods and responds without a body: next.config.ts declares these paths gzip, and a JSON refusal would not be
 * compressed.
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
