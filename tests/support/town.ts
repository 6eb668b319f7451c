import { type Ground, layGround, type SignedInPayer } from './ground.ts'
import { openTestService, type TestService } from './test-service.ts'

/** A test service on an embedded ledger, with what its payers need at hand. */
export interface Town extends Ground, Omit<TestService<'embedded'>, keyof Ground> {
  /** POST /transfer */
  post(payer: SignedInPayer, body: unknown): Promise<{ status: number; body: Record<string, unknown> }>
}

/** @param variables on top of the service's own configuration */
export async function openTown(variables: Record<string, string> = {}): Promise<Town> {
  const service = await openTestService({ ledger: 'embedded', variables })
  return {
    ...service,
    ...(await layGround(service.ledger, service.database, service.wallet)),
    post: async (payer, sent) => {
      const { status, body } = await service.ask('POST', '/transfer', { session: payer.session, body: sent })
      return { status, body }
    },
  }
}
