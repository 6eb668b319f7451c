import { TransactionBuilder } from '@stellar/stellar-sdk'
import type { TestNetwork } from '#lib/cli/participants.ts'
import type { Database } from '#lib/db/connection.ts'
import { findOpenTransfers, findTransferOfHash } from '#lib/submission/transfers.ts'
import { buildTransfer } from '#lib/wallet/calls.ts'
import type { Opening } from '#lib/wallet/commitment.ts'
import { seededRandom } from '../sponsor/random.ts'
import type { FaultProxy } from '../support/fault-proxy.ts'
import type { SignedInPayer } from '../support/test-service.ts'
import { lie } from './lies.ts'

/** What a request was answered with. */
export interface Answer {
  status: number
  body: Record<string, unknown>
}

/** A service that can be killed, and comes back. */
export interface Instance {
  post(payer: SignedInPayer, request: { signedXDR: string; payoutId?: string }): Promise<Answer>
  /** Looks at the payer's payouts. */
  look(payer: SignedInPayer): Promise<void>
  /** Ends it without a word, and starts it anew. */
  kill(): Promise<void>
  /** Stops it for so many milliseconds. */
  freeze?(milliseconds: number): Promise<void>
}

/** Two services on one database, each behind an RPC of its own that lies. */
export interface Pair {
  instances: Instance[]
  proxies: FaultProxy[]
  /** the ledger as it is */
  network: TestNetwork
  db: Database
  /** Breaks every connection to the database; undefined where that cannot be. */
  breakDatabase?(): Promise<void>
}

/** An employer with payouts to one payee, and what it has signed. */
export interface Party {
  payer: SignedInPayer
  payee: string
  payouts: string[]
}

/** An envelope that an employer signed: its inner hash, and the opening after it. */
interface Signed {
  hash: string
  signedXdr: string
  sequence: bigint
  next: Opening
}

/** An answer, and the inner hash of what was posted. */
export interface Told extends Answer {
  hash: string
}

/** What happened: every answer, and how many faults were injected. */
export interface Happened {
  told: Told[]
  signed: Map<string, Signed>
  faults: number
}

/** Runs one history: everything that clients, network, processes and database can do, in an order that the seed gives. */
export async function runHistory(
  pair: Pair,
  parties: readonly Party[],
  seed: number,
  steps: number,
): Promise<Happened> {
  const random = seededRandom(seed)
  const pick = <Item>(items: readonly Item[]): Item => items[random(items.length)] as Item
  const happened: Happened = { told: [], signed: new Map(), faults: 0 }
  const count = () => {
    happened.faults += 1
  }
  const wallets = parties.map((party) => ({ ...party, opening: party.payer.opening, signed: [] as Signed[] }))
  type Wallet = (typeof wallets)[number]
  const running: Promise<unknown>[] = []
  const wait = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds))

  /** Signs a transfer with the number that the ledger has next, whatever is open: a rival, if something is. */
  const sign = async (wallet: Wallet): Promise<Signed | undefined> => {
    for (const one of wallet.signed) {
      const found = await pair.network.rpc.getTransaction(one.hash)
      if (found.status === 'SUCCESS') wallet.opening = one.next
    }
    const to = wallet.payee
    const transfer = { to, amount: BigInt(1 + random(9)), opening: wallet.opening }
    // The ledger may have moved on meanwhile: then the wallet has to look again.
    const built = await buildTransfer(pair.network, wallet.payer, transfer, { seconds: 12 + random(6) }).catch(
      () => undefined,
    )
    if (!built) return undefined
    const { sequence } = TransactionBuilder.fromXdr(built.signedXdr, pair.network.passphrase) as { sequence: string }
    const one = { hash: built.hash, signedXdr: built.signedXdr, sequence: BigInt(sequence), next: built.next }
    wallet.signed.push(one)
    happened.signed.set(one.hash, one)
    return one
  }
  const post = async (wallet: Wallet, { hash, signedXdr }: Signed) => {
    const payoutId = random(3) === 0 ? pick(wallet.payouts) : undefined
    const request = { signedXDR: signedXdr, ...(payoutId !== undefined && { payoutId }) }
    const answer = await pick(pair.instances)
      .post(wallet.payer, request)
      .catch(() => undefined)
    if (answer) happened.told.push({ ...answer, hash })
  }
  const sendAlone = async ({ signedXdr }: Signed) => {
    const transaction = TransactionBuilder.fromXdr(signedXdr, pair.network.passphrase)
    await pair.network.rpc.sendTransaction(transaction).catch(() => undefined)
  }

  const postNew = async () => {
    const wallet = pick(wallets)
    const one = await sign(wallet)
    if (one) running.push(post(wallet, one))
    return one && { wallet, one }
  }
  const postAgain = async () => {
    const wallet = pick(wallets)
    if (wallet.signed.length > 0) running.push(post(wallet, pick(wallet.signed)))
  }
  const actions: (() => Promise<unknown>)[] = [
    postNew,
    postNew,
    postNew,
    postAgain,
    postAgain,
    async () => {
      // The same at both services at once.
      const made = await postNew()
      if (made) running.push(post(made.wallet, made.one))
    },
    async () => {
      const made = await postNew()
      if (made) await sendAlone(made.one)
    },
    async () => {
      // Sent by the client alone, and posted later, or never.
      const wallet = pick(wallets)
      const one = await sign(wallet)
      if (one) await sendAlone(one)
    },
    async () => {
      count()
      await pick(pair.instances).kill()
    },
    async () => {
      count()
      await pick(pair.instances).freeze?.(200 + random(2_000))
    },
    async () => {
      if (random(3) === 0 && pair.breakDatabase) {
        count()
        await pair.breakDatabase()
      }
    },
    async () =>
      running.push(
        pick(pair.instances)
          .look(pick(wallets).payer)
          .catch(() => undefined),
      ),
    () => wait(random(1_200)),
  ]

  for (const proxy of pair.proxies) proxy.rule(lie(random, 20 + random(40), count))
  for (let step = 0; step < steps; step += 1) {
    await pick(actions)().catch(() => undefined)
    await wait(random(250))
  }
  for (const proxy of pair.proxies) proxy.rule(null)
  await Promise.all(running)
  await untilSettled(pair, wallets)
  return happened
}

/** Every end is final: nothing is open once every max time has passed and the RPC tells the truth. */
async function untilSettled({ db, instances }: Pair, parties: readonly Party[]): Promise<void> {
  for (let waited = 0; waited < 90_000; waited += 500) {
    if ((await findOpenTransfers(db)).length === 0) return
    for (const { payer } of parties) await instances[0]?.look(payer).catch(() => undefined)
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
  throw new Error('a transfer is still open')
}

/** Whether an inner transaction is recorded, and as what. */
export const statusOf = async (db: Database, hash: string) => (await findTransferOfHash(db, hash))?.transfer
