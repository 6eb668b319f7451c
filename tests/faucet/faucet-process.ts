import { POST } from '#app/api/funding/faucet/route.ts'
import { readEnvironment } from '#lib/config/environment.ts'
import { provideService } from '#lib/server/services.ts'
import { startService } from '#lib/server/start.ts'

/** A service in a separate process, which sends itself one request with SESSION and prints the status. */
provideService(startService(readEnvironment(process.env)))
const headers = { Authorization: `Bearer ${process.env.SESSION}` }
const response = await POST(
  new Request('http://localhost:3000/api/funding/faucet', { method: 'POST', headers }),
  undefined,
)
process.stdout.write(`answered ${response.status}\n`)
