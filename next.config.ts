import type { NextConfig } from 'next'

/**
 * All but the interface and the targets of forms, which proxy.ts names, too: Next reads that list without running the file.
 * Next takes letters of either case here, but its routes do not: /API is a page.
 */
const PAGES = {
  source: '/((?!(?-i:api(?:/|$)|sign-in/password/?$|sign-out/?$|invite/email/?$|invite/sign-in/?$)).*)',
  destination: '/',
  statusCode: 303,
} as const

const config: NextConfig = {
  poweredByHeader: false,
  typedRoutes: true,
  agentRules: false,
  // A redirect would answer a preflight, and a browser takes none there: both spellings are the same path.
  skipTrailingSlashRedirect: true,
  // Keeps PGlite's WebAssembly out of the public assets, and the SDK and what speaks to sockets out of the bundler.
  serverExternalPackages: ['@electric-sql/pglite', '@stellar/stellar-sdk', '@vercel/postgres', 'pg', 'ws'],
  // Before it asks proxy.ts about a request, Next holds so much of its body in memory, and logs a line if it is more.
  experimental: { proxyClientMaxBodySize: 1 },
  // Files that are read, not imported: the viewer of /docs.
  outputFileTracingIncludes: {
    '/docs/**': ['./lib/api/viewer/*.{js,css}', './node_modules/swagger-ui-dist/swagger-ui{-bundle.js,.css}'],
  },
  // For an image: a folder that runs without npm. `next start` serves the ordinary build and warns of this one.
  ...(process.env.BUILD_STANDALONE && { output: 'standalone' }),
  // Pages take no body. Next redirects before it asks proxy.ts, and reads nothing: a stranger fills no log with bodies.
  redirects: async () => [
    { ...PAGES, has: [{ type: 'header', key: 'content-length', value: '0*[1-9].*' }] },
    { ...PAGES, has: [{ type: 'header', key: 'transfer-encoding' }] },
  ],
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
