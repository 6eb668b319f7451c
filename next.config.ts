import type { NextConfig } from 'next'

const config: NextConfig = {
  poweredByHeader: false,
  typedRoutes: true,
  agentRules: false,
  // A redirect would answer a preflight, and a browser takes none there: both spellings are the same path.
  skipTrailingSlashRedirect: true,
  // Keeps PGlite's WebAssembly out of the public assets, and the SDK and what speaks to sockets out of the bundler.
  serverExternalPackages: ['@electric-sql/pglite', '@stellar/stellar-sdk', '@vercel/postgres', 'pg', 'ws'],
  // For an image: a folder that runs without npm. `next start` serves the ordinary build and warns of this one.
  ...(process.env.BUILD_STANDALONE && { output: 'standalone' }),
  headers: async () => [
    {
      source: '/api/:path*',
      headers: [
        { key: 'Cache-Control', value: 'no-store' },
        { key: 'X-Content-Type-Options', value: 'nosniff' },
      ],
    },
  ],
}

export default config
