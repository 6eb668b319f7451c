import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

/**
 * Serves the build of this project as the `server.js` of a standalone build does: with Next's server but without its
 * command line, and with the recorded configuration of the build.
 */
const require = createRequire(import.meta.url)
const { config } = JSON.parse(readFileSync('.next/required-server-files.json', 'utf8')) as { config: unknown }
Object.assign(process.env, { NODE_ENV: 'production', __NEXT_PRIVATE_STANDALONE_CONFIG: JSON.stringify(config) })
require('next')
const { startServer } = require('next/dist/server/lib/start-server')
await startServer({
  dir: process.cwd(),
  isDev: false,
  config,
  hostname: '0.0.0.0',
  port: Number(process.env.PORT),
  allowRetry: false,
})
