import { composeRelay } from '#lib/server/relay.ts'
import { composeSettings } from '#lib/server/settings.ts'
import { startService } from '#lib/server/start.ts'
import type { SetupServices } from '#lib/setup/channels.ts'

/**
 * The parts of the service that setup uses. Funding a channel is a deposit: it is recorded, submitted, tracked and
 * settled like any other, and a restarted setup continues an open one. That takes the database, the sponsor and the
 * tracking of a complete service, but no requests.
 */
export const setupServices: SetupServices = {
  composeSettings,
  openRelay: async (environment, prover) => {
    // Setup composes its own relay, so the service must not start another: batch jobs are off.
    const service = await startService({ ...environment, BATCH_ENABLED: false })
    try {
      return { relay: await composeRelay(service, { prover }), faucet: service.faucet, close: service.close }
    } catch (error) {
      await service.close()
      throw error
    }
  },
}
