import { subscribe } from 'node:diagnostics_channel'
import { Server } from 'node:http'
import { listenHostOf, withoutWhiteSpace } from '#lib/config/listen-host.ts'
import { acceptIpv6Loopback } from '#lib/http/loopback.ts'
import { holdBuild } from './process/build-lock.ts'
import { printMessage } from './process/output.ts'
import { requireFreePort } from './process/port.ts'

holdBuild()

/** Runs `next start` on the address in LISTEN_HOST: Next takes an address only from its command line. */
const variables = withoutWhiteSpace({ ...process.env })
const host = listenHostOf(variables)
await requireFreePort(Number(variables.PORT || 3000), host).catch(({ message }: Error) => {
  printMessage(message)
  process.exit(1)
})
if (host === '127.0.0.1') {
  const onListening = (message: unknown) => {
    const { server } = message as { server: unknown }
    if (!(server instanceof Server) || isNext) return
    isNext = true
    server.once('listening', () => acceptIpv6Loopback(server))
  }
  let isNext = false
  // The first HTTP server of the process is Next's: everything else starts at boot, after Next has begun to listen.
  subscribe('tracing:net.server.listen:asyncStart', onListening)
}
process.argv.splice(2, Number.POSITIVE_INFINITY, 'start', ...(host ? ['-H', host] : []))
await import(import.meta.resolve('next/dist/bin/next'))
