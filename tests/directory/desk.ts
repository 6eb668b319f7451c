import { readEnvironment } from '#lib/config/environment.ts'
import type { Database, Store } from '#lib/db/connection.ts'
import { provideService } from '#lib/server/services.ts'
import { type RunningService, startService } from '#lib/server/start.ts'
import { cloneDatabase } from '../support/database.ts'
import { pair } from '../support/inner-transaction.ts'
import { type OfficeEmployer, openEmployer } from '../support/office.ts'

/** A service on a database, without a sponsor, and with a ledger that is not there. */
export interface Desk {
  service: RunningService
  db: Database
  /** an employer of this name, the same key in every run */
  employ(name: string): Promise<OfficeEmployer>
  close(): Promise<void>
}

export async function openDesk(): Promise<Desk> {
  const postgres = await cloneDatabase()
  const service = await openService(postgres.url, postgres.shared)
  const db = await postgres.store.database()
  return {
    service,
    db,
    employ: (name) => openEmployer(service, db, pair(name).publicKey()),
    close: async () => {
      await service.close()
      await postgres.drop()
    },
  }
}

/** The service alone, on the database at `url`, or on the one that it is given. */
export async function openService(url: string, shared?: Store): Promise<RunningService> {
  const service = await startService(
    readEnvironment({
      DATABASE_URL: url,
      SESSION_SECRET: 'a secret for tests, long enough for HS256',
      STELLAR_RPC_URL: 'http://127.0.0.1:1',
    }),
    shared,
  )
  provideService(Promise.resolve(service))
  return service
}
