import type { NextConfig } from 'next'

const config: NextConfig = {
  poweredByHeader: false,
  typedRoutes: true,
  // No page shows an image that would need /_next/image.
  images: { unoptimized: true },
  agentRules: false,
  // Browsers accept no redirect as the answer to a CORS preflight, so a path with a slash at its end is the same path.
  skipTrailingSlashRedirect: true,
  // Keeps PGlite's WebAssembly out of the public assets, and the SDK and what speaks to sockets out of the bundler.
  serverExternalPackages: ['@electric-sql/pglite', '@stellar/stellar-sdk', '@vercel/postgres', 'pg', 'ws'],
  // Files that are read, not imported: the viewer of /docs.
  outputFileTracingIncludes: {
    '/docs/**': ['./lib/api/viewer/*.{js,css}', './node_modules/swagger-ui-dist/swagger-ui{-bundle.js,.css}'],
  },
  // For an image: a folder that runs without npm. `next start` serves the ordinary build and warns of this one.
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
      // lib/api/viewer/files.ts compresses these two files once, and they are sent as they are.
      source: '/docs/:version([0-9a-f]{16})/:file(swagger-ui-bundle\\.js|swagger-ui\\.css)',
      headers: [{ key: 'Content-Encoding', value: 'gzip' }],
    },
    {
      // A header that is set here wins over the handler's, and pages of the archive may be cached.
      source: '/api/:path((?!archive/).*)',
      headers: [{ key: 'Cache-Control', value: 'no-store' }],
    },
    {
      source: '/api/:path*',
      headers: [
        // An answer of the API is no page: nothing in it may load or run, and nothing may frame it.
        { key: 'Content-Security-Policy', value: "default-src 'none'; frame-ancestors 'none'" },
      ],
    },
  ],
}

export default config
