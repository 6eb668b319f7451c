import { Networks } from '@stellar/stellar-sdk'
import type { Envelope, Transfer } from '#drizzle/schema/transfers.ts'
import { type Identity, mintSession } from '#lib/auth/session.ts'
import { readEnvironment } from '#lib/config/environment.ts'
import type { Database } from '#lib/db/connection.ts'
import type { DevnetOptions } from '#lib/devnet/devnet.ts'
import { provideService } from '#lib/server/services.ts'
import { type RunningService, startService } from '#lib/server/start.ts'
import { findTransferOfHash } from '#lib/transfers/rows.ts'
import { openApi } from './api.ts'
import { type ApiClient, openApiClient } from './api-client.ts'
import { cloneDatabase, type TestDatabase } from './database.ts'
import { ISSUER } from './directory.ts'
import { type FakeRpc, startFakeRpc, TOKEN } from './fake-rpc.ts'
import { listen } from './listen.ts'
import { freePort } from './port.ts'
import { type Payer, startTestLedger, type TestLedger } from './test-ledger.ts'

/** The network of a test: an embedded ledger, a fake RPC, or an unreachable RPC. */
interface Ledgers {
  embedded: TestLedger
  fake: FakeRpc
  none: undefined
}

export interface TestServiceOptions<Kind extends keyof Ledgers = 'none'> {
  ledger?: Kind
  /** milliseconds between the ledgers of an embedded one; 0 closes one only when the test does */
  closeMs?: number
  /** how many ledgers each node behind the RPC of an embedded ledger lags; requests go to the nodes in turn */
  lag?: readonly number[]
  /** how many ledgers the RPC of an embedded ledger keeps */
  historyLedgers?: number
  /** losses between the RPC's node and the validator of an embedded ledger */
  loses?: DevnetOptions['loses']
  /** overrides the configuration of the other options; an empty value removes a variable */
  variables?: Record<string, string>
  /** freezes the clock at this time until the test sets it; by default the clock runs */
  now?: Date
  /** sends requests over HTTP; by default they call the route handlers */
  http?: boolean
  /** how often maintenance runs; by default never without an embedded ledger, where calls to the RPC are counted */
  choresEveryMs?: number
  /** used instead of a new clone, and left open */
  database?: TestDatabase
}

/** A payer with a session. */
export interface SignedInPayer extends Payer {
  session: string
}

/** A transfer with the requested envelope. */
type TransferRow = Transfer & { envelope: Envelope }

/** A service with its ledger and database. */
export interface TestService<Kind extends keyof Ledgers = keyof Ledgers> extends ApiClient {
  running: RunningService
  ledger: Ledgers[Kind]
  db: Database
  database: TestDatabase
  /** the address of the service, without `/api` */
  base: string
  variables: Record<string, string>
  /** the current time of the routes */
  clock: { now: Date }
  /** Makes it the service of the route handlers, as it is when it opens. */
  provide(): void
  sessionOf(identity: Identity): Promise<string>
  /** a session of an account of the ledger */
  wallet(address: string): Promise<string>
  /** a session of a user of the identity provider, whose email is verified */
  user(sub: string, email?: string): Promise<string>
  /** Creates and signs in an account of an embedded ledger with this confidential balance in base units. */
  employ(balance?: bigint): Promise<SignedInPayer>
  /** POST /transfer */
  post(payer: { session: string }, body: unknown): Promise<{ status: number; body: Record<string, unknown> }>
  findTransfer(innerHash: string): Promise<TransferRow | undefined>
  /** Runs `work` with another service on the same database and ledger, with these variables changed. */
  withVariables<Result>(
    variables: Record<string, string>,
    work: (other: RunningService) => Promise<Result>,
  ): Promise<Result>
  close(): Promise<void>
}

/** Starts a service in this process for the route handlers. */
export async function openTestService<Kind extends keyof Ledgers = 'none'>(
  options: TestServiceOptions<Kind> = {},
): Promise<TestService<Kind>> {
  const database = options.database ?? (await cloneDatabase())
  const ledger = (await startLedger(options)) as Ledgers[Kind]
  const port = options.http ? await freePort() : undefined
  const base = port === undefined ? 'http://localhost:3000' : `http://localhost:${port}`
  const variables = {
    PUBLIC_URL: base,
    DATABASE_URL: database.url,
    SESSION_SECRET: 'a secret for tests, long enough for HS256',
    STELLAR_RPC_URL: 'http://127.0.0.1:1',
    ...describeLedger(ledger),
    ...options.variables,
  }
  const { choresEveryMs = options.ledger === 'embedded' ? 30_000 : 0 } = options
  const service = await startService(readEnvironment(variables), database.shared, choresEveryMs)
  const clock = openClock(options.now)
  const provide = () => provideService(Promise.resolve({ ...service, now: () => clock.now }))
  provide()
  const fetchApi = await openApi()
  const server = port === undefined ? undefined : await listen(port, fetchApi)
  const publicUrl = variables.PUBLIC_URL
  const client = await openApiClient(server ? { base, fetch } : { base: publicUrl, fetch: fetchApi })
  const sessionOf = (identity: Identity) => mintSession(service.settings.sessions, identity, clock.now)
  const db = await database.store.database()
  const wallet = (address: string) => sessionOf({ kind: 'ledger', sub: address })
  return {
    ...client,
    running: service,
    ledger,
    database,
    db,
    base,
    variables,
    clock,
    provide,
    sessionOf,
    wallet,
    user: (sub, email) => sessionOf({ kind: 'idp', sub, issuer: service.settings.provider?.issuer ?? ISSUER, email }),
    employ: async (balance) => {
      if (!ledger || !('endowPayer' in ledger)) throw new Error('only an embedded ledger has accounts')
      const payer = await ledger.endowPayer(balance)
      return { ...payer, session: await wallet(payer.address) }
    },
    post: async ({ session }, sent) => {
      const { status, body } = await client.ask('POST', '/transfer', { session, body: sent })
      return { status, body }
    },
    findTransfer: async (innerHash) => {
      const transfer = await findTransferOfHash(db, innerHash)
      const envelope = await db.query.envelopes.findFirst({ where: (table, { eq }) => eq(table.innerHash, innerHash) })
      return transfer && envelope && { ...transfer.transfer, envelope }
    },
    withVariables: async (changed, work) => {
      const sharedStore = 'DATABASE_URL' in changed ? undefined : database.shared
      const other = await startService(readEnvironment({ ...variables, ...changed }), sharedStore)
      provideService(Promise.resolve(other))
      try {
        return await work(other)
      } finally {
        provide()
        await other.close()
      }
    },
    close: async () => {
      await server?.close()
      await service.close()
      await ledger?.close()
      if (!options.database) await database.drop()
    },
  }
}

async function startLedger({
  ledger,
  variables,
  closeMs,
  lag,
  historyLedgers,
  loses,
}: TestServiceOptions<keyof Ledgers>): Promise<Ledgers[keyof Ledgers]> {
  const isTestnet = variables?.STELLAR_NETWORK === 'testnet'
  const passphrase = isTestnet ? Networks.TESTNET : variables?.DEVNET_PASSPHRASE
  if (ledger === 'fake') return await startFakeRpc({ ...(passphrase && { passphrase }) })
  return ledger === 'embedded' ? await startTestLedger({ passphrase, closeMs, lag, historyLedgers, loses }) : undefined
}

/** The variables for the ledger. */
export function describeLedger(ledger: Ledgers[keyof Ledgers]): Record<string, string> {
  if (!ledger) return {}
  if (!('devnet' in ledger)) return { STELLAR_RPC_URL: ledger.url, CONFIDENTIAL_TOKEN: TOKEN }
  return {
    STELLAR_RPC_URL: ledger.url,
    DEVNET_PROOFS: 'stand-in',
    CONFIDENTIAL_TOKEN: ledger.devnet.deployment.contracts.token,
    SPONSOR_SEED: ledger.sponsor.secret(),
  }
}

/** A clock frozen at `now`, or running if undefined. */
function openClock(now: Date | undefined): { now: Date } {
  if (now) return { now }
  return {
    get now() {
      return new Date()
    },
  }
}
