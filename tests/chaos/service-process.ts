import { readEnvironment } from '#lib/config/environment.ts'
import { provideService } from '#lib/server/services.ts'
import { startService } from '#lib/server/start.ts'
import { openApi } from '../support/api.ts'
import { listen } from '../support/listen.ts'

/** A service in a separate process, which can be killed and paused. */
const configuration = readEnvironment(process.env)
provideService(startService(configuration))
await listen(configuration.PORT, await openApi())
process.send?.('at work')
