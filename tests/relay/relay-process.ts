import { environment } from '#lib/config/environment.ts'
import { startRelay } from '#lib/server/relay.ts'
import { startService } from '#lib/server/start.ts'
import { QUICK } from './quick.ts'

/** A relay as a process of its own, which says so when it is at work. */
await startRelay(await startService(environment()), { times: QUICK })
process.send?.('at work')
