import { readEnvironment } from '#lib/config/environment.ts'
import { installFrontListener } from '#lib/http/front.ts'
import { provideService } from '#lib/server/services.ts'
import { startService } from '#lib/server/start.ts'
import { openApi } from '../support/api.ts'
import { listen } from '../support/listen.ts'

/** A service in a separate process, which can be killed and paused. */
const configuration = readEnvironment(process.env)
installFrontListener(configuration.PORT)
provideService(startService(configuration))
const { server } = await listen(configuration.PORT, await openApi())
// Next has such a listener, too: it ignores paths that aren't its own routes.
server.on('upgrade', () => undefined)
process.send?.('at work')
