import type { NextConfig } from 'next'
import { readVersion } from './lib/config/version.ts'

const config: NextConfig = {
  poweredByHeader: false,
  typedRoutes: true,
  // The build's commit, which `readVersion` finds in it where there is no repository.
  env: { COMMIT: readVersion().commit ?? '' },
  // No page shows an image that would need /_next/image.
  images: { unoptimized: true },
  agentRules: false,
  // `npm run check` checks the types, of the tests as well.
  typescript: { ignoreBuildErrors: true },
  // Browsers accept no redirect in response to a CORS preflight, so a trailing slash makes no difference.
  skipTrailingSlashRedirect: true,
  // Keeps PGlite's WebAssembly out of the public assets, and the SDK and socket libraries out of the bundle.
  serverExternalPackages: ['@electric-sql/pglite', '@stellar/stellar-sdk', '@vercel/postgres', 'pg', 'ws'],
  // The package of /sdk and the guides of /docs are read from files, not imported.
  outputFileTracingIncludes: {
    '/sdk/**': ['./lib/sdk/dist/*.tgz'],
    '/docs/guides/**': ['./docs/*.md'],
  },
  // In development, the service logs these itself.
  logging: { incomingRequests: { ignore: [/^\/api\//] } },
  // The image runs without npm. `next start` warns about a standalone build, so npm start uses an ordinary one.
  ...(process.env.BUILD_STANDALONE && { output: 'standalone' }),
  headers: async () => [
    {
      source: '/:path*',
      headers: [
        { key: 'X-Content-Type-Options', value: 'nosniff' },
        { key: 'Referrer-Policy', value: 'same-origin' },
      ],
    },
    {
      // A header that is set here wins over the handler's, and pages of the archive may be cached.
      source: '/api/:path((?!archive/).*)',
      headers: [{ key: 'Cache-Control', value: 'no-store' }],
    },
    {
      source: '/api/:path*',
      headers: [
        // A response of the API is not a page: nothing in it may load or run, and no page may frame it.
        { key: 'Content-Security-Policy', value: "default-src 'none'; frame-ancestors 'none'" },
      ],
    },
  ],
}

export default config
