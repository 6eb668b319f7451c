import type { NextConfig } from 'next'

/**
 * Every path but those of the API and of the targets of forms. proxy.ts has to repeat the list as a literal, since Next reads
 * it without running the file. Next ignores case here unless it is told otherwise, but not in its routes: /API is a page.
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
  // Browsers accept no redirect as the answer to a CORS preflight, so a path with a slash at its end is the same path.
  skipTrailingSlashRedirect: true,
  // Keeps PGlite's WebAssembly out of the public assets, and the SDK and what speaks to sockets out of the bundler.
  serverExternalPackages: ['@electric-sql/pglite', '@stellar/stellar-sdk', '@vercel/postgres', 'pg', 'ws'],
  // Before it calls proxy.ts, Next holds this many bytes of a body in memory, and logs a line if there are more.
  experimental: { proxyClientMaxBodySize: 1 },
  // Files that are read, not imported: the viewer of /docs.
  outputFileTracingIncludes: {
    '/docs/**': ['./lib/api/viewer/*.{js,css}', './node_modules/swagger-ui-dist/swagger-ui{-bundle.js,.css}'],
  },
  // For an image: a folder that runs without npm. `next start` serves the ordinary build and warns of this one.
  ...(process.env.BUILD_STANDALONE && { output: 'standalone' }),
  // Pages take no body. Next redirects before it calls proxy.ts, so it reads no body, and strangers cannot fill the log.
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
      // lib/api/viewer/files.ts compresses these two files once, and they are sent as they are.
      source: '/docs/:version([0-9a-f]{16})/:file(swagger-ui-bundle\\.js|swagger-ui\\.css)',
      headers: [{ key: 'Content-Encoding', value: 'gzip' }],
    },
    {
      source: '/api/:path*',
      headers: [
        { key: 'Cache-Control', value: 'no-store' },
        // An answer of the API is no page: nothing in it may load or run, and nothing may frame it.
        { key: 'Content-Security-Policy', value: "default-src 'none'; frame-ancestors 'none'" },
      ],
    },
  ],
}

export default config
