import { environment } from '#lib/config/environment.ts'
import { provideService } from '#lib/server/services.ts'
import { startService } from '#lib/server/start.ts'
import { openApi } from '../support/api.ts'
import { listen } from '../support/listen.ts'

// The API of this version without a build: a later version's test runs it from this version's sources.
const configuration = environment()
const service = await startService(configuration)
provideService(Promise.resolve(service))
await listen(configuration.PORT, await openApi())
