import { type Keypair, TransactionBuilder, type xdr } from '@stellar/stellar-sdk'
import { eq, sql } from 'drizzle-orm'
import { POST } from '#app/api/funding/faucet/route.ts'
import { GET } from '#app/api/funding/vault/route.ts'
import { grants } from '#drizzle/schema/transfers.ts'
import { type Identity, mintSession } from '#lib/auth/session.ts'
import { enrol, sendAndWait } from '#lib/cli/participants.ts'
import { readEnvironment } from '#lib/config/environment.ts'
import { devnetKeys } from '#lib/devnet/devnet.ts'
import { provideService } from '#lib/server/services.ts'
import { type RunningService, startService } from '#lib/server/start.ts'
import { findTransfer } from '#lib/submission/transfers.ts'
import { EMPTY, syncBalance } from '#lib/wallet/balance.ts'
import { buildDeposit, buildMerge } from '#lib/wallet/calls.ts'
import { readAccountEvents } from '#lib/wallet/events.ts'
import type { Holder } from '#lib/wallet/keys.ts'
import { openTown, type Town } from '../support/town.ts'

/** What a request was answered with. */
export interface Answer {
  status: number
  retryAfter: string | null
  body: Record<string, unknown>
}

/** A registered account that has nothing yet, and a session for it. */
export interface Person extends Holder {
  address: string
  session: string
}

/** A grant with its deposit; `signed` while that is open. */
export type Grant = Omit<typeof grants.$inferSelect, 'status'> & {
  status: (typeof grants.$inferSelect)['status'] | 'signed'
  hash: string | null
  faucet: string | null
  resultCode: string | null
}

/** A town whose service has the issuer of the test USDC for a faucet. */
export interface FaucetTown extends Omit<Town, 'ask'> {
  issuer: Keypair
  settle(): Promise<Person>
  mint(identity: Identity): Promise<string>
  /** POST /funding/faucet, of this town's service unless another is given */
  ask(session: string | undefined, service?: RunningService): Promise<Answer>
  /** GET /funding/vault */
  vault(session: string | undefined, service?: RunningService): Promise<Answer>
  grant(address: string): Promise<Grant | undefined>
  /** hashes of all deposits to `address` that stand on the ledger */
  deposits(address: string): Promise<string[]>
  /** what the person can spend after a merge, in base units, decrypted from the ledger */
  spendable(person: Person): Promise<bigint>
  /** a deposit of somebody else's making that uses the faucet's next sequence number, and stands on the ledger */
  overtake(person: Person): Promise<void>
  /** a transaction of one operation that stands on the ledger */
  perform(source: Keypair, operation: xdr.Operation): Promise<void>
  /** the claim of an account is ten minutes older */
  age(address: string): Promise<void>
}

const issuer = devnetKeys('Standalone Network ; February 2017').issuer

/** @param variables on top of the town's own configuration */
export async function openFaucetTown(variables: Record<string, string> = {}): Promise<FaucetTown> {
  const town = await openTown({ FAUCET_SEED: issuer.secret(), ...variables })
  const { network, db, service } = town
  const mint = (identity: Identity) => mintSession(service.settings.sessions, identity, new Date())
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
    ...town,
    issuer,
    mint,
    settle: async () => {
      const holder = await enrol(network)
      const address = holder.signer.publicKey()
      return { ...holder, address, session: await mint({ kind: 'ledger', sub: address }) }
    },
    ask: (session, running = service) => call(POST, { path: 'faucet', method: 'POST', session }, running),
    vault: (session, running = service) => call(GET, { path: 'vault', method: 'GET', session }, running),
    grant: async (address) => {
      const [row] = await db.select().from(grants).where(eq(grants.account, address))
      const deposit = row?.transfer == null ? undefined : await findTransfer(db, row.transfer)
      if (!row) return undefined
      return {
        ...row,
        status: row.status === 'claimed' && deposit ? 'signed' : row.status,
        hash: deposit?.envelopes[0]?.innerHash ?? null,
        faucet: deposit?.transfer.account ?? null,
        resultCode: deposit?.transfer.resultCode ?? null,
      }
    },
    deposits: async (address) => {
      const { events } = await readAccountEvents(network, address)
      return events
        .filter(({ name, addresses }) => name === 'deposit' && addresses[1] === address)
        .map(({ transaction }) => transaction)
    },
    spendable: async ({ address, keys, signer }) => {
      await sendAndWait(network, (await buildMerge(network, signer, EMPTY)).signedXdr)
      return (await syncBalance(network, { address, vk: keys.vk })).spendable.value
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
    age: async (address) => {
      await db.execute(
        sql`UPDATE grants SET claimed_at = claimed_at - interval '10 minutes' WHERE account = ${address}`,
      )
    },
  }
}

/** Another service on the same ground. */
export function startAnother(town: FaucetTown, variables: Record<string, string> = {}): Promise<RunningService> {
  return startService(readEnvironment({ ...town.variables, ...variables }), town.shared)
}
