import type { ArchiveContext } from '#lib/archive/ingest.ts'
import type { Database } from '#lib/db/connection.ts'
import type { DirectoryContext } from '#lib/directory/context.ts'
import type { ConfidentialAccounts } from '#lib/directory/contractors/registration.ts'
import type { Webhooks } from '#lib/events/webhooks.ts'
import type { Faucet } from '#lib/faucet/faucet.ts'
import type { Vault } from '#lib/faucet/vault.ts'
import { perProcess } from '#lib/observability/per-process.ts'
import type { BatchContext } from '#lib/relay/job.ts'
import type { Network } from '#lib/stellar/network.ts'
import type { Sponsor } from '#lib/transfers/sponsor.ts'
import type { Tracker } from '#lib/transfers/track.ts'
import type { Settings } from './settings.ts'

/** The parts of a running process. Any instance can respond to any request. */
export interface Service {
  settings: Settings
  network: Network
  /** @throws Refusal `unavailable` while the database cannot be reached */
  database(): Promise<Database>
  /** looks up confidential accounts */
  confidentialAccounts: ConfidentialAccounts
  /** sends recorded envelopes and determines the outcome of their transfers; needs no key */
  tracker: Tracker
  sponsor: Sponsor | undefined
  faucet: Faucet | undefined
  vault: Vault | undefined
  /** stores the events of the token; undefined without a token */
  archive: ArchiveContext | undefined
  /** accepts batch jobs */
  batch: BatchContext | undefined
  /** sends events to the endpoints of organisations */
  webhooks: Webhooks
  now: () => Date
}

const shared = perProcess('service', (): { service?: Promise<Service> } => ({}))

/** Makes `starting` the service of this process. */
export function provideService(starting: Promise<Service>): void {
  shared.service = starting
}

/** The service of this process, once it has started. */
export function service(): Promise<Service> {
  if (!shared.service) throw new Error('the service has not been started')
  return shared.service
}

/** The context of the directory's verbs in this service. */
export async function directoryContext(service: Service): Promise<DirectoryContext> {
  const { database, confidentialAccounts: accounts, settings, now } = service
  return { db: await database(), accounts, settings, now: now() }
}
