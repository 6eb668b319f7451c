import { Keypair } from '@stellar/stellar-sdk'
import { eq } from 'drizzle-orm'
import { sponsoredTransfers } from '#drizzle/schema/transfers.ts'
import { mintSession } from '#lib/auth/session.ts'
import { endow, enrol, openTestNetwork, type TestNetwork } from '#lib/cli/participants.ts'
import { readEnvironment } from '#lib/config/environment.ts'
import type { Database, Store } from '#lib/db/connection.ts'
import { startDevnet } from '#lib/devnet/devnet.ts'
import { composeSettings } from '#lib/server/settings.ts'
import { NOTHING, type Opening } from '#lib/wallet/commitment.ts'
import type { Holder } from '#lib/wallet/keys.ts'
import { cloneDatabase } from './database.ts'
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts'

/** A registered account with a confidential balance, and a session for it. */
export interface Employer extends Holder {
  address: string
  opening: Opening
  session: string
}

export type TransferRow = typeof sponsoredTransfers.$inferSelect

/** What a service stands on: an embedded ledger, a faulty RPC in front of it, a database. */
export interface Ground {
  devnet: Awaited<ReturnType<typeof startDevnet>>
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
  employ(balance?: bigint): Promise<Employer>
  row(innerHash: string): Promise<TransferRow | undefined>
  close(): Promise<void>
}

/** @param variables on top of the ground's own configuration */
export async function openGround(variables: Record<string, string> = {}): Promise<Ground> {
  const passphrase = variables.DEVNET_PASSPHRASE ?? 'Standalone Network ; February 2017'
  const devnet = await startDevnet({ directory: null, port: 0, closeMs: 200, passphrase })
  const proxy = await startFaultProxy(devnet.rpcUrl)
  const postgres = await cloneDatabase()
  const db = await postgres.store.database()
  const network = await openTestNetwork(`${devnet.url}/deployment.json`)
  const sponsor = Keypair.random()
  const funded = await fetch(`${devnet.friendbotUrl}?addr=${sponsor.publicKey()}`)
  if (!funded.ok) throw new Error('the sponsor is not funded')
  const all = {
    PUBLIC_URL: 'http://localhost:3000',
    DATABASE_URL: postgres.url,
    SESSION_SECRET: 'a secret for tests, long enough for HS256',
    STELLAR_RPC_URL: proxy.url,
    CONFIDENTIAL_TOKEN: devnet.deployment.contracts.token,
    SPONSOR_SEED: sponsor.secret(),
    ...variables,
  }
  const { sessions } = composeSettings(readEnvironment(all))
  return {
    devnet,
    network,
    proxy,
    databaseUrl: postgres.url,
    shared: postgres.shared,
    db,
    sponsor,
    variables: all,
    employ: async (balance = 1_000_0000000n) => {
      const holder = await enrol(network)
      const address = holder.signer.publicKey()
      // Nobody needs anything to pay nothing.
      const issuer = Keypair.fromSecret(devnet.issuerSecret)
      const opening = balance === 0n ? NOTHING : await endow(network, issuer, holder, balance)
      const session = await mintSession(sessions, { kind: 'ledger', sub: address }, new Date())
      return { ...holder, address, opening, session }
    },
    row: async (innerHash) => {
      const [row] = await db.select().from(sponsoredTransfers).where(eq(sponsoredTransfers.innerHash, innerHash))
      return row
    },
    close: async () => {
      await proxy.close()
      await devnet.close()
      await postgres.drop()
    },
  }
}
