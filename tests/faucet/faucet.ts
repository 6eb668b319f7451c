import { type Keypair, TransactionBuilder, type xdr } from '@stellar/stellar-sdk'
import { and, desc, eq } from 'drizzle-orm'
import { POST } from '#app/api/funding/faucet/route.ts'
import { GET } from '#app/api/funding/vault/route.ts'
import { type TransferStatus, transfers } from '#drizzle/schema/transfers.ts'
import { enrol, sendAndWait } from '#lib/cli/client/participants.ts'
import { readEnvironment } from '#lib/config/environment.ts'
import { devnetKeys } from '#lib/devnet/devnet.ts'
import { provideService } from '#lib/server/services.ts'
import { type RunningService, startService } from '#lib/server/start.ts'
import { findTransfer } from '#lib/transfers/rows.ts'
import { EMPTY, syncBalance } from '#lib/wallet/balance.ts'
import { buildDeposit, buildMerge } from '#lib/wallet/calls.ts'
import { readAccountEvents } from '#lib/wallet/events.ts'
import type { Holder } from '#lib/wallet/keys.ts'
import type { TestService } from '../support/test-service.ts'

/** The response to a request. */
export interface Answer {
  status: number
  retryAfter: string | null
  body: Record<string, unknown>
}

/** A registered account with a balance of zero, and a session for it. */
export interface Person extends Holder {
  session: string
}

/** The last deposit of an account; `signed` while it is open. */
export interface Grant {
  status: 'signed' | 'granted' | 'returned' | 'unknown'
  hash: string | null
  faucet: string
  resultCode: string | null
}

const STATUSES = {
  open: 'signed',
  succeeded: 'granted',
  failed: 'returned',
  expired: 'returned',
  unknown: 'unknown',
} as const satisfies Record<TransferStatus, Grant['status']>

/** The faucet of a service, as its users and the ledger see it. */
export interface Faucet {
  settle(): Promise<Person>
  /** POST /funding/faucet, by default of this faucet's service */
  ask(session: string | undefined, running?: RunningService): Promise<Answer>
  /** GET /funding/vault */
  vault(session: string | undefined, running?: RunningService): Promise<Answer>
  grant(address: string): Promise<Grant | undefined>
  /** hashes of all applied deposits to `address` */
  deposits(address: string): Promise<string[]>
  /** the person's spendable balance after a merge, in base units, decrypted from the ledger */
  spendable(person: Person): Promise<bigint>
  /** applies a deposit of another signer that uses the faucet's next sequence number */
  overtake(person: Person): Promise<void>
  /** applies a transaction of one operation */
  perform(source: Keypair, operation: xdr.Operation): Promise<void>
}

/** The issuer of the test USDC is the faucet. */
export const FAUCET = {
  ledger: 'embedded',
  variables: { FAUCET_SEED: devnetKeys('Standalone Network ; February 2017').issuer.secret() },
} as const

export function openFaucet({ db, running: service, ledger, wallet }: TestService<'embedded'>): Faucet {
  const { network, issuer } = ledger
  const call = async (
    handler: typeof POST,
    request: { path: string; method: string; session: string | undefined },
    running: RunningService,
  ): Promise<Answer> => {
    provideService(Promise.resolve(running))
    const { path, method, session } = request
    const headers: Record<string, string> = session === undefined ? {} : { Authorization: `Bearer ${session}` }
    const response = await handler(
      new Request(`http://localhost:3000/api/funding/${path}`, { method, headers }),
      undefined,
    )
    return {
      status: response.status,
      retryAfter: response.headers.get('retry-after'),
      body: (await response.json()) as Record<string, unknown>,
    }
  }
  return {
    settle: async () => {
      const holder = await enrol(network)
      return { ...holder, session: await wallet(holder.address) }
    },
    ask: (session, running = service) => call(POST, { path: 'faucet', method: 'POST', session }, running),
    vault: (session, running = service) => call(GET, { path: 'vault', method: 'GET', session }, running),
    grant: async (address) => {
      const isDeposit = and(eq(transfers.recipient, address), eq(transfers.kind, 'deposit'))
      const [last] = await db.select().from(transfers).where(isDeposit).orderBy(desc(transfers.createdAt)).limit(1)
      if (!last) return undefined
      const [envelope] = (await findTransfer(db, last.id))?.envelopes ?? []
      const { status, account, resultCode } = last
      return { status: STATUSES[status], hash: envelope?.innerHash ?? null, faucet: account, resultCode }
    },
    deposits: async (address) => {
      const { events } = await readAccountEvents(network, address)
      return events
        .filter(({ name, addresses }) => name === 'deposit' && addresses[1] === address)
        .map(({ transaction }) => transaction)
    },
    spendable: async (holder) => {
      await sendAndWait(network, (await buildMerge(network, holder.signer, EMPTY)).signedXdr)
      return (await syncBalance(network, holder)).spendable.value
    },
    overtake: async ({ address }) => {
      const { signedXdr } = await buildDeposit(network, issuer, { to: address, amount: 1n })
      await sendAndWait(network, signedXdr)
    },
    perform: async (source, operation) => {
      const account = await network.rpc.getAccount(source.publicKey())
      const transaction = new TransactionBuilder(account, { fee: '1000000', networkPassphrase: network.passphrase })
        .addOperation(operation)
        .setTimeout(60)
        .build()
      const isCall = operation.body.type === 'invokeHostFunction'
      const ready = isCall ? await network.rpc.prepareTransaction(transaction) : transaction
      ready.sign(source)
      await sendAndWait(network, ready.toXdr())
    },
  }
}

/** Another service on the same ledger and database. */
export function startAnother(
  service: TestService<'embedded'>,
  variables: Record<string, string> = {},
): Promise<RunningService> {
  return startService(readEnvironment({ ...service.variables, ...variables }), service.database.shared)
}
