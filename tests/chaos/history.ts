import { TransactionBuilder } from '@stellar/stellar-sdk'
import type { TransferStatus } from '#drizzle/schema/transfers.ts'
import type { TestNetwork } from '#lib/cli/client/participants.ts'
import type { Database } from '#lib/db/connection.ts'
import { findOpenTransfers, findTransferOfHash } from '#lib/transfers/rows.ts'
import { buildTransfer } from '#lib/wallet/calls.ts'
import type { Opening } from '#lib/wallet/commitment.ts'
import type { Holder } from '#lib/wallet/keys.ts'
import type { FaultProxy } from '../support/fault-proxy.ts'
import type { SignedInPayer } from '../support/test-service.ts'
import { seededRandom } from '../transfers/random.ts'
import type { ReadLedger } from './ledger-pages.ts'
import { openLiar } from './lies.ts'
import type { Runs } from './runs.ts'

/** The response to a request. */
export interface Answer {
  status: number
  body: Record<string, unknown>
}

/** A process that can be killed and restarted, or paused. */
export interface Mortal {
  /** Kills and restarts the process, with its clock this far off. Resolves to false if it was already stopped or starting. */
  kill(clockShiftMs: number): Promise<boolean>
  /** Stops the process for this many milliseconds. Resolves to false if it was already stopped or starting. */
  freeze?(milliseconds: number): Promise<boolean>
}

/** A service. */
export interface Instance extends Mortal {
  /** @param upgrade the request's Upgrade header, if it has one */
  post(payer: SignedInPayer, request: { signedXDR: string; payoutId?: string }, upgrade?: string): Promise<Answer>
  /** Requests the payer's payouts. */
  poll(payer: SignedInPayer): Promise<void>
  /** Has the relays pay the payer's contractor this many times. */
  startJob?(payer: SignedInPayer, transfers: number): Promise<void>
}

/** Two services on one database, and relays, each behind a separate faulty RPC. */
export interface Pair {
  instances: Instance[]
  relays: Mortal[]
  proxies: FaultProxy[]
  /** the ledger itself, without the faults */
  network: TestNetwork
  readLedger: ReadLedger
  db: Database
  /** employers whose batches the relays pay */
  runs?: Runs
  /**
   * Breaks every connection to the database, and accepts none for this many milliseconds; undefined if that isn't
   * possible.
   */
  breakDatabase?(milliseconds: number): Promise<void>
  /** Copies the database, which accepts no connections in the meantime. Resolves to false if it is away already. */
  backUp?(): Promise<boolean>
  /**
   * Stops every process, replaces the database by its last copy, and starts the processes again. Resolves to false if
   * there is no copy.
   */
  restore?(): Promise<boolean>
  /** Resolves to whether the relays have found every payment that a restored database lacks. */
  reconciled?(): Promise<boolean>
  /** Stops closing ledgers for this long; undefined if the test doesn't control the ledger's clock. */
  standStill?(milliseconds: number): Promise<void>
  /** Closes this many ledgers at once. */
  closeLedgers?(count: number): void
}

/** An employer with payouts to one payee, the opening of its balance, and its signed transfers. */
export interface Party {
  payer: SignedInPayer
  payee: Holder
  payouts: string[]
  signed: Signed[]
}

/** An envelope that an employer signed, and the opening after it. */
interface Signed {
  hash: string
  signedXdr: string
  to: string
  amount: bigint
  next: Opening
  /** the ledger's result, if the wallet has seen it */
  isOver: boolean
  /** milliseconds */
  signedAt: number
}

/** A response, and the inner hash of the posted transaction. */
export interface Told extends Answer {
  hash: string
  /** the ledger when it was posted */
  ledger: number
}

/** The events of a history: every response, every signed transfer, and the number of injected faults. */
export interface Happened {
  told: Told[]
  signed: string[]
  /** for each transfer, the outcome observed during the history */
  ends: Map<string, TransferStatus>
  faults: number
}

/** After this time, in ms, an envelope can no longer apply. */
const FORGOTTEN_AFTER = 40_000
/** How far (ms) a process's clock is off. */
const CLOCK_SHIFTS_MS = [-300_000, 0, 300_000]
/** The database is restored one time in this many: payments stop for a while after each. */
const RESTORES = 20
/** One request in this many offers another protocol. */
const UPGRADES = 5
/** How long employers continue their runs once nothing lies any more. */
const GRACE_MS = 15_000
/** A client that posts again chooses among this many of its latest envelopes. */
const RECENT = 8

/**
 * Runs one history: all possible actions of clients, network, processes and database, in an order determined by the seed.
 */
export async function runHistory(
  pair: Pair,
  parties: readonly Party[],
  seed: number,
  steps: number,
): Promise<Happened> {
  const random = seededRandom(seed)
  const pick = <Item>(items: readonly Item[]): Item => items[random(items.length)] as Item
  const happened: Happened = { told: [], signed: [], ends: new Map(), faults: 0 }
  const count = () => {
    happened.faults += 1
  }
  const countIf = (happens: boolean) => {
    if (happens) count()
  }
  const running = new Set<Promise<unknown>>()
  /** Runs while the next steps are taken. */
  const begin = (work: Promise<unknown> | undefined) => {
    if (!work) return
    const done: Promise<unknown> = work.catch(() => undefined).finally(() => running.delete(done))
    running.add(done)
  }
  const wait = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds))

  /** Signs a transfer with the ledger's next number. It is a rival if another transfer is open. */
  const sign = async (party: Party, to: string): Promise<Signed | undefined> => {
    for (const one of party.signed.filter(({ isOver }) => !isOver)) {
      const found = await pair.network.rpc.getTransaction(one.hash)
      if (found.status === 'SUCCESS') party.payer.opening = one.next
      one.isOver = found.status !== 'NOT_FOUND' || Date.now() - one.signedAt > FORGOTTEN_AFTER
    }
    const amount = BigInt(1 + random(9))
    const transfer = { to, amount, opening: party.payer.opening }
    // If the ledger has moved on in the meantime, the wallet reads its balance again.
    const built = await buildTransfer(pair.network, party.payer, transfer, { seconds: 11 + random(5) }).catch(
      () => undefined,
    )
    if (!built) return undefined
    const { hash, signedXdr, next } = built
    const one = { hash, signedXdr, to, amount, next, isOver: false, signedAt: Date.now() }
    party.signed.push(one)
    happened.signed.push(hash)
    return one
  }
  const post = async (party: Party, { hash, signedXdr }: Signed) => {
    const payoutId = random(3) === 0 ? pick(party.payouts) : undefined
    const request = { signedXDR: signedXdr, ...(payoutId !== undefined && { payoutId }) }
    const instance = pick(pair.instances)
    const { sequence: ledger } = await pair.network.rpc.getLatestLedger()
    const upgrade = random(UPGRADES) === 0 ? pick(['websocket', 'h2c']) : undefined
    countIf(upgrade !== undefined)
    const answer = await instance.post(party.payer, request, upgrade).catch(() => undefined)
    if (answer) happened.told.push({ ...answer, hash, ledger })
  }
  const sendAlone = async ({ signedXdr }: Signed) => {
    const transaction = TransactionBuilder.fromXdr(signedXdr, pair.network.passphrase)
    await pair.network.rpc.sendTransaction(transaction)
  }

  /** One time in six any party's payee: while a transfer is open, this makes a rival with another recipient. */
  const recipientOf = (party: Party) => (random(6) === 0 ? pick(parties) : party).payee.signer.publicKey()
  const postNew = async () => {
    const party = pick(parties)
    const one = await sign(party, recipientOf(party))
    if (one) begin(post(party, one))
    return one && { party, one }
  }
  const postAgain = async () => {
    const party = pick(parties)
    if (party.signed.length > 0) begin(post(party, pick(party.signed.slice(-RECENT))))
  }
  const startJob = async () => begin(pick(pair.instances).startJob?.(pick(parties).payer, 1 + random(4)))
  const mortals = [...pair.instances, ...pair.relays]
  const liars = pair.proxies.map(() => openLiar(random, 20 + random(40), count))
  const actions: (() => Promise<unknown>)[] = [
    postNew,
    postNew,
    postNew,
    postAgain,
    postAgain,
    startJob,
    startJob,
    async () => {
      // The same at both services at once.
      const made = await postNew()
      if (made) begin(post(made.party, made.one))
    },
    async () => {
      const made = await postNew()
      if (made) begin(sendAlone(made.one))
    },
    async () => {
      // The client sends the transaction itself, and posts it later or never.
      const party = pick(parties)
      const one = await sign(party, recipientOf(party))
      if (one) begin(sendAlone(one))
    },
    async () => begin(pick(mortals).kill(pick(CLOCK_SHIFTS_MS)).then(countIf)),
    async () =>
      begin(
        pick(mortals)
          .freeze?.(200 + random(2_000))
          .then(countIf),
      ),
    async () => {
      if (random(2) === 0 || !pair.breakDatabase) return
      count()
      begin(pair.breakDatabase(random(2) === 0 ? 0 : random(1_000)))
    },
    async () => {
      if (random(3) === 0) begin(pair.backUp?.().then(countIf))
    },
    async () => {
      if (random(RESTORES) !== 0 || !(await pair.restore?.())) return
      count()
      // A transfer may have succeeded with an envelope that the copy lacks: then it expires.
      happened.ends.clear()
    },
    async () => begin(pair.reconciled?.()),
    async () => {
      if (!pair.standStill) return
      count()
      begin(pair.standStill(random(2_000)))
    },
    async () => pair.closeLedgers?.(1 + random(4)),
    async () => pick(liars).restore(200 + random(2_000)),
    async () => begin(pick(pair.instances).poll(pick(parties).payer)),
    async () => begin(noteEnds(pair.db, happened.ends)),
    () => wait(random(1_000)),
    ...(pair.runs?.actions(random) ?? []).map((action) => async () => begin(action())),
  ]

  for (const [index, proxy] of pair.proxies.entries()) proxy.rule(liars[index]?.rule ?? null)
  for (let step = 0; step < steps; step += 1) {
    await pick(actions)().catch(() => undefined)
    await wait(random(150))
  }
  for (const proxy of pair.proxies) proxy.rule(null)
  await Promise.race([Promise.all(running), wait(GRACE_MS)])
  pair.runs?.stop()
  while (running.size > 0) await Promise.all(running)
  await untilSettled(pair, parties)
  return happened
}

/** The number of final outcomes that are recorded at once. */
const LAST_ENDS = 50

async function noteEnds(db: Database, ends: Happened['ends']): Promise<void> {
  const settled = await db.query.transfers.findMany({
    where: (table, { isNotNull }) => isNotNull(table.settledAt),
    orderBy: (table, { desc }) => desc(table.settledAt),
    limit: LAST_ENDS,
  })
  for (const { id, status } of settled) if (!ends.has(id)) ends.set(id, status)
}

/** The time in ms within which transfers end once the RPC responds correctly: every max time has passed by then. */
const QUIET_MS = 120_000

/** Every outcome is final: no transfer is open once every max time has passed and the RPC responds correctly. */
async function untilSettled({ db, instances, reconciled }: Pair, parties: readonly Party[]): Promise<void> {
  for (let waited = 0; waited < QUIET_MS; waited += 500) {
    const open = await findOpenTransfers(db)
    const { rows } = await listRows(db, `SELECT 1 FROM relay_lines WHERE settled_at IS NULL`)
    const isReconciled = (await reconciled?.()) ?? true
    if (open.length === 0 && rows.length === 0 && isReconciled) return
    for (const { payer } of waited % 5_000 === 0 ? parties : []) await instances[0]?.poll(payer).catch(() => undefined)
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
}

/** The rows of a statement; every driver returns them. */
const listRows = async (db: Database, statement: string) =>
  (await db.execute(statement)) as unknown as { rows: Record<string, unknown>[] }

/** Whether an inner transaction is recorded, and with which status. */
export const statusOf = async (db: Database, hash: string) => (await findTransferOfHash(db, hash))?.transfer
