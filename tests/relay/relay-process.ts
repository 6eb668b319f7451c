import { startService } from '#lib/boot.ts'
import { environment } from '#lib/env.ts'
import { startRelay } from '#lib/relay-service.ts'
import { QUICK } from './quick.ts'

/** A relay as a process of its own, which says so when it is at work. */
await startRelay(await startService(environment()), { times: QUICK })
process.send?.('at work')
