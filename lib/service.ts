import type { Database } from './db.ts'
import type { Registry } from './directory/registration.ts'
import type { Faucet } from './funding/faucet.ts'
import type { Vault } from './funding/vault.ts'
import type { Network } from './ledger/network.ts'
import type { BatchDesk } from './relay/jobs.ts'
import type { JobQueue } from './relay/queue.ts'
import type { Settings } from './settings.ts'
import type { Sponsor } from './sponsor/sponsor.ts'

/** What a running process works with. Every instance of it may answer every request. */
export interface Service {
  settings: Settings
  network: Network
  /** @throws Refusal `unavailable` while the database cannot be reached */
  database(): Promise<Database>
  /** where confidential accounts are looked up */
  registry: Registry
  sponsor: Sponsor | undefined
  faucet: Faucet | undefined
  vault: Vault | undefined
  /** the way of jobs to the relays */
  queue: JobQueue
  /** where batch jobs are handed in */
  batch: BatchDesk | undefined
  now: () => Date
}

// A build may bundle the boot module and the routes apart, so what they share hangs on the process.
const shared = globalThis as { payrollService?: Promise<Service> }

/** Makes `starting` the service of this process. */
export function provideService(starting: Promise<Service>): void {
  shared.payrollService = starting
}

/** The service of this process, once it has started. */
export function service(): Promise<Service> {
  if (!shared.payrollService) throw new Error('the service has not been started')
  return shared.payrollService
}
