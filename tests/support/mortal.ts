import { readEnvironment } from '#lib/config/environment.ts'
import { provideService } from '#lib/server/services.ts'
import { type RunningService, startService } from '#lib/server/start.ts'
import { makeGate } from './gate.ts'

/** A service in this process that can end as a killed process does: it leaves what it has written and sent so far. */
export interface MortalService {
  running: RunningService
  /** Makes it the service of the route handlers. */
  provide(): void
  /** Cuts its connections to the database and the RPC for good, so that its code can do nothing more. */
  kill(): Promise<void>
}

/**
 * Starts a service whose connections to its database and RPC pass through gates.
 * @param choresEveryMs how often maintenance runs; 0 disables it
 */
export async function startMortal(
  variables: Record<string, string>,
  { choresEveryMs }: { choresEveryMs?: number } = {},
): Promise<MortalService> {
  const database = await makeGate(variables.DATABASE_URL ?? '')
  const rpc = await makeGate(variables.STELLAR_RPC_URL ?? '')
  await Promise.all([database.open(), rpc.open()])
  const gated = { ...variables, DATABASE_URL: database.url, STELLAR_RPC_URL: rpc.url }
  const running = await startService(readEnvironment(gated), undefined, choresEveryMs)
  return {
    running,
    provide: () => provideService(Promise.resolve(running)),
    kill: async () => {
      await Promise.all([database.shut(), rpc.shut()])
      void running.close().catch(() => undefined)
    },
  }
}
