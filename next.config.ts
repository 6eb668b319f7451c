import type { NextConfig } from 'next'

const config: NextConfig = {
  poweredByHeader: false,
  typedRoutes: true,
  agentRules: false,
  // A redirect would answer a preflight, and a browser takes none there: both spellings are the same path.
  skipTrailingSlashRedirect: true,
  // Keeps PGlite's WebAssembly out of the public assets, and the SDK and what speaks to sockets out of the bundler.
  serverExternalPackages: ['@electric-sql/pglite', '@stellar/stellar-sdk', '@vercel/postgres', 'pg', 'ws'],
  // Before it asks proxy.ts about a request, Next holds so much of its body in memory. Pages take no body.
  experimental: { proxyClientMaxBodySize: 1 },
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
      // Compressed once and sent as they are: see lib/api/viewer/files.ts.
      source: '/docs/:version([0-9a-f]{16})/:file(swagger-ui-bundle\\.js|swagger-ui\\.css)',
      headers: [{ key: 'Content-Encoding', value: 'gzip' }],
    },
    {
      source: '/api/:path*',
      headers: [
        { key: 'Cache-Control', value: 'no-store' },
        // An answer of the interface is no page: nothing in it may load or run, and nothing may frame it.
        { key: 'Content-Security-Policy', value: "default-src 'none'; frame-ancestors 'none'" },
      ],
    },
  ],
}

export default config
