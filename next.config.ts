import type { NextConfig } from 'next'

const config: NextConfig = {
  poweredByHeader: false,
  typedRoutes: true,
  agentRules: false,
  // Keeps PGlite's WebAssembly out of the public assets and the SDK out of the bundler.
  serverExternalPackages: ['@electric-sql/pglite', '@stellar/stellar-sdk', 'pg'],
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
