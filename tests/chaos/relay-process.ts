import { environment } from '#lib/config/environment.ts'
import { startRelay } from '#lib/server/relay.ts'
import { startService } from '#lib/server/start.ts'

/** A relay in a separate process. Its intervals are short, so that a history ends soon after its last fault. */
const times = { validity: 15, drain: 20, retry: 0.3, lease: 3, longestLease: 10, rest: 1, lag: 2, chores: 3, poll: 1 }
// Maintenance is the services' in these histories.
await startRelay(await startService(environment(), undefined, 0), { times })
process.send?.('at work')
