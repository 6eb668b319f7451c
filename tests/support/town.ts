import { POST } from '#app/api/transfer/route.ts'
import { readEnvironment } from '#lib/config/environment.ts'
import { provideService } from '#lib/server/services.ts'
import { type RunningService, startService } from '#lib/server/start.ts'
import { type Employer, type Ground, openGround } from './ground.ts'

/** What a request was answered with. */
export interface Answer {
  status: number
  body: Record<string, unknown>
}

/** A ground with a service on it, in this process, reached through the exported route handlers. */
export interface Town extends Ground {
  service: RunningService
  /** POST /transfer */
  post(employer: Employer, body: unknown): Promise<Answer>
}

/** @param variables on top of the ground's own configuration */
export async function openTown(variables: Record<string, string> = {}): Promise<Town> {
  const ground = await openGround(variables)
  const service = await startService(readEnvironment(ground.variables), ground.shared)
  provideService(Promise.resolve(service))
  return {
    ...ground,
    service,
    post: async (employer, body) => {
      const request = new Request('http://localhost:3000/api/transfer', {
        method: 'POST',
        headers: { Authorization: `Bearer ${employer.session}`, 'Content-Type': 'application/json' },
        body: JSON.stringify(body),
      })
      const response = await POST(request, undefined)
      return { status: response.status, body: (await response.json()) as Record<string, unknown> }
    },
    close: async () => {
      await service.close()
      await ground.close()
    },
  }
}
