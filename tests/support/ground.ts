import type { Keypair } from '@stellar/stellar-sdk'
import type { Envelope, Transfer } from '#drizzle/schema/transfers.ts'
import { mintSession } from '#lib/auth/session.ts'
import type { TestNetwork } from '#lib/cli/participants.ts'
import { readEnvironment } from '#lib/config/environment.ts'
import type { Database, Store } from '#lib/db/connection.ts'
import { composeSettings } from '#lib/server/settings.ts'
import { findTransferOfHash } from '#lib/submission/transfers.ts'
import { cloneDatabase, type TestDatabase } from './database.ts'
import type { FaultProxy } from './fault-proxy.ts'
import { type Payer, startTestLedger, type TestLedger } from './test-ledger.ts'
import { describeLedger } from './test-service.ts'

/** A payer with a session. */
export interface SignedInPayer extends Payer {
  session: string
}

/** A transfer, and the one of its envelopes that was asked for. */
export type TransferRow = Transfer & { envelope: Envelope }

/** What services in other processes stand on: an embedded ledger, a faulty RPC in front of it, a database. */
export interface Ground {
  devnet: TestLedger['devnet']
  /** the ledger as it is, past the proxy */
  network: TestNetwork
  proxy: FaultProxy
  databaseUrl: string
  /** for `startService` */
  shared: Store | undefined
  db: Database
  sponsor: Keypair
  /** the configuration of a service on this ground */
  variables: Record<string, string>
  employ(balance?: bigint): Promise<SignedInPayer>
  row(innerHash: string): Promise<TransferRow | undefined>
  close(): Promise<void>
}

/** @param variables on top of the ground's own configuration */
export async function openGround(variables: Record<string, string> = {}): Promise<Ground> {
  const ledger = await startTestLedger({ passphrase: variables.DEVNET_PASSPHRASE })
  const database = await cloneDatabase()
  const all = {
    PUBLIC_URL: 'http://localhost:3000',
    DATABASE_URL: database.url,
    SESSION_SECRET: 'a secret for tests, long enough for HS256',
    ...describeLedger(ledger),
    ...variables,
  }
  const { sessions } = composeSettings(readEnvironment(all))
  return {
    ...(await layGround(ledger, database, (sub) => mintSession(sessions, { kind: 'ledger', sub }, new Date()))),
    variables: all,
    close: async () => {
      await ledger.close()
      await database.drop()
    },
  }
}

/** What a ground and a town have in common. */
export async function layGround(
  ledger: TestLedger,
  database: TestDatabase,
  sessionOf: (address: string) => Promise<string>,
): Promise<Omit<Ground, 'variables' | 'close'>> {
  const db = await database.store.database()
  const { devnet, network, proxy, sponsor } = ledger
  return {
    devnet,
    network,
    proxy,
    sponsor,
    databaseUrl: database.url,
    shared: database.shared,
    db,
    employ: async (balance) => {
      const payer = await ledger.endowPayer(balance)
      return { ...payer, session: await sessionOf(payer.address) }
    },
    row: async (innerHash) => {
      const found = await findTransferOfHash(db, innerHash)
      const envelope = found?.envelopes.find((one) => one.innerHash === innerHash)
      return found && envelope && { ...found.transfer, envelope }
    },
  }
}
