import { inject } from 'vitest'
import { openTestService, type TestService } from './test-service.ts'

/** Milliseconds between the ledgers of a service that is in use. */
const CLOSE_MS = 100

const services = new Map<string, Promise<TestService<'embedded' | 'none'>>>()

/**
 * The service of this worker, for test files that change nothing global: they count only records of the organisations
 * and accounts that they create. It stays open, but its ledger closes only until a file calls `close`.
 */
export async function shareService<Kind extends 'embedded' | 'none' = 'none'>(
  ledger: Kind = 'none' as Kind,
): Promise<TestService<Kind>> {
  const name = `${ledger} ${inject('postgres') ? 'postgres' : 'pglite'}`
  const opening = services.get(name) ?? openTestService({ ledger, closeMs: 0 })
  services.set(name, opening)
  const service = (await opening) as TestService<Kind>
  service.provide()
  const devnet = service.ledger?.devnet
  const closing = devnet && setInterval(devnet.closeLedger, CLOSE_MS)
  return {
    ...service,
    close: async () => {
      clearInterval(closing)
      service.ledger?.proxy.rule(null)
    },
  }
}
