import { environment } from '#lib/config/environment.ts'
import { startRelay } from '#lib/server/relay.ts'
import { startService } from '#lib/server/start.ts'
import { SHORT_TIMES } from './short-times.ts'

/** A relay in a separate process, which reports when it is at work. */
await startRelay(await startService(environment()), { times: SHORT_TIMES })
process.send?.('at work')
