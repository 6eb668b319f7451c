import { ConfigurationError, environment } from '#lib/config/environment.ts'
import { startRelay } from '#lib/server/relay.ts'
import { startService } from '#lib/server/start.ts'
import { besideService } from './shared-parts.ts'

/** Runs a relay on its own, beside a service that has the same database. */
async function main(): Promise<void> {
  const service = await startService(besideService(environment()))
  const host = await startRelay(service)
  console.log(`relay  ${host.url}/.well-known/disbursement-relay`)
  const stop = async () => {
    await host.close()
    await service.close()
    process.exit(0)
  }
  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
}

await main().catch((error: unknown) => {
  console.error(error instanceof ConfigurationError ? error.message : error)
  process.exit(1)
})
