import { setTimeout } from 'node:timers/promises'
import { Account, type Keypair } from '@stellar/stellar-sdk'
import { and, desc, eq, gt, gte, inArray, or, sql } from 'drizzle-orm'
import { type Transfer, transfers } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { readAccount } from '#lib/stellar/account.ts'
import { readLatestLedger } from '#lib/stellar/latest-ledger.ts'
import { ledgerUnreachable } from '#lib/stellar/ledger-error.ts'
import type { Network } from '#lib/stellar/network.ts'
import { recordUnsponsored } from '#lib/transfers/record.ts'
import { findOpenTransfer, MAY_HAVE_USED_NUMBER } from '#lib/transfers/rows.ts'
import type { Tracker } from '#lib/transfers/track.ts'
import { buildDeposit } from '#lib/wallet/calls.ts'
import { WalletError } from '#lib/wallet/wallet-error.ts'

/** How long (seconds) a signed deposit is valid: long enough for several ledgers, short enough to learn of its expiry soon. */
const VALIDITY = 30

/** Stroops: an inclusion bid high enough for a busy network, and a margin on top of the simulated resource fee. */
const INCLUSION_FEE = 10_000
const MARGIN = 100_000n

/** The account that signs deposits, and its token. */
export interface Depositor {
  network: Network
  /** the confidential token, C… */
  token: string
  keypair: Keypair
}

/**
 * Signs a deposit of `amount` base units into the confidential balance of `account`, with the faucet's next sequence number
 * from the ledger: `recordedLedger` is that of the response in which it was unused. Submits nothing.
 * @throws LedgerError `unavailable`; WalletError `would-fail`
 */
async function signDeposit({ network, token, keypair }: Depositor, { account: to, amount }: GrantRequest) {
  const faucet = keypair.publicKey()
  const [{ account, latestLedger: recordedLedger }, { closedAt }] = await Promise.all([
    readAccount(network.server, faucet),
    readLatestLedger(network),
  ])
  if (!account) throw new WalletError('would-fail', 'the faucet has no account on the ledger')
  // The ledger checks the time bounds by its own clock.
  const deployment = { rpc: network.server, passphrase: network.passphrase, token, now: () => closedAt * 1000 }
  const source = new Account(faucet, String(account.seqNum))
  const options = { source, seconds: VALIDITY, inclusionFee: INCLUSION_FEE, margin: MARGIN }
  const signed = await buildDeposit(deployment, keypair, { to, amount }, options).catch((cause: unknown) => {
    throw cause instanceof WalletError ? cause : ledgerUnreachable(cause)
  })
  return { ...signed, sequenceNumber: account.seqNum + 1n, recordedLedger }
}

/** What an account asks for. */
interface GrantRequest {
  /** G… or C… */
  account: string
  /** base units */
  amount: bigint
  /** seconds between two grants of one account */
  coolDown: number
}

/** The transfer of a deposit for which an account has to wait, and for how long (s, at least one). */
export type EarlierGrant = { transfer: string; retryAfter: number }

/**
 * The deposit for which an account has to wait: one that is open, or the latest of the last `coolDown` seconds, by the
 * database's clock, that was applied or may have been.
 */
async function findEarlierGrant(db: Database, { account, coolDown }: GrantRequest): Promise<EarlierGrant | undefined> {
  const { id, kind, recipient, status, createdAt } = transfers
  const until = sql`${createdAt} + make_interval(secs => ${coolDown})`
  const isGranted = inArray(status, ['open', 'succeeded', 'unknown'])
  const isRecent = or(eq(status, 'open'), gt(until, sql`clock_timestamp()`))
  const retryAfter = sql<number>`greatest(1, ceil(extract(epoch from ${until} - clock_timestamp())))::int`
  const [earlier] = await db
    .select({ transfer: id, retryAfter })
    .from(transfers)
    .where(and(eq(recipient, account), eq(kind, 'deposit'), isGranted, isRecent))
    .orderBy(desc(createdAt))
    .limit(1)
  return earlier
}

/** How a request ends. `busy`: nothing is recorded for it, and nothing will be. `open`: its deposit is not decided yet. */
type GrantOutcome =
  | { kind: 'settled'; transfer: Transfer }
  | { kind: 'too-soon'; earlier: EarlierGrant }
  | { kind: 'impossible'; contractError: number | null }
  | { kind: 'busy' | 'open' }

/** Makes deposits one at a time: an account has at most one open transfer. */
export interface Granting {
  /** Resolves to the end of the request, or to `busy` or `open` after `patience` (ms). */
  grant(db: Database, request: GrantRequest, patience: number): Promise<GrantOutcome>
}

/** A request in this process. */
interface Attempt extends GrantRequest {
  left(): number
  /** whether its caller has been told that nothing was granted */
  isOver: boolean
  /** whether its deposit may be recorded */
  isRecorded: boolean
}

export function openGranting(depositor: Depositor & { tracker: Tracker }): Granting {
  const { tracker } = depositor
  const faucet = depositor.keypair.publicKey()
  /** requests of this process take turns; across processes the faucet's one open transfer makes them wait */
  let turn: Promise<unknown> = Promise.resolve()

  async function grant(db: Database, request: GrantRequest, patience: number): Promise<GrantOutcome> {
    const deadline = performance.now() + patience
    const left = () => deadline - performance.now()
    const attempt: Attempt = { ...request, left, isOver: false, isRecorded: false }
    const outcome = turn.then(() => repeat(db, attempt))
    turn = outcome.catch(() => undefined)
    const late = setTimeout(patience, undefined, { ref: false }).then(() => {
      attempt.isOver = true
      return unfinished(attempt)
    })
    return await Promise.race([outcome, late])
  }

  const unfinished = ({ isRecorded }: Attempt): GrantOutcome => ({ kind: isRecorded ? 'open' : 'busy' })

  async function repeat(db: Database, attempt: Attempt): Promise<GrantOutcome> {
    while (attempt.left() > 0 && !attempt.isOver) {
      const ended = await step(db, attempt).catch(async (error: unknown) => {
        log('error', 'faucet', { account: attempt.account, failure: describeFailure(error) })
        await setTimeout(depositor.network.pollMs)
      })
      if (ended) return ended
    }
    return unfinished(attempt)
  }

  /** Resolves to undefined if the request is to be tried again. */
  async function step(db: Database, attempt: Attempt): Promise<GrantOutcome | undefined> {
    const earlier = await findEarlierGrant(db, attempt)
    if (earlier) {
      // The process that recorded it may be gone.
      void tracker.track([earlier.transfer], { waitMs: 0, lookUp: 'untracked' })
      return { kind: 'too-soon', earlier }
    }
    const open = await findOpenTransfer(db, faucet)
    if (open) return void (await tracker.track([open.id], { waitMs: attempt.left() }))
    const deposit = await signDeposit(depositor, attempt).catch((error: unknown) => {
      if (!(error instanceof WalletError && error.code === 'would-fail')) throw error
      log('error', 'faucet deposit impossible', { account: attempt.account, failure: error.message })
      return { kind: 'impossible' as const, contractError: error.contractError ?? null }
    })
    if ('kind' in deposit) return deposit
    if (attempt.isOver) return { kind: 'busy' }
    const { sequenceNumber, recordedLedger } = deposit
    const call = { kind: 'deposit', account: faucet, recipient: attempt.account } as const
    // Another process may have used the number since the account was read.
    const used = and(eq(transfers.account, faucet), gte(transfers.sequenceNumber, sequenceNumber), MAY_HAVE_USED_NUMBER)
    const mayBegin = async (tx: Database) =>
      !(await findEarlierGrant(tx, attempt)) && (await tx.$count(transfers, used)) === 0
    attempt.isRecorded = true
    // The insert waits for a deposit that is being recorded.
    const recorded = await recordUnsponsored(db, { ...call, sequenceNumber, recordedLedger }, deposit, mayBegin)
    attempt.isRecorded = recorded !== undefined
    // Another process was first: its deposit uses the same sequence number, or is for the same account.
    if (!recorded) return undefined
    const sent = await tracker.submit(recorded, { innerHash: deposit.hash, isNew: true, waitMs: attempt.left() })
    // A deposit that the network refused may still be applied, so wait for its outcome.
    const wait = { waitMs: attempt.left() }
    const [outcome] = sent.kind === 'refused' ? await tracker.track([recorded.transfer.id], wait) : [sent]
    if (outcome?.kind !== 'settled') return { kind: 'open' }
    const { status, resultCode } = outcome.transfer
    if (status !== 'expired' || resultCode === null || attempt.left() <= 0) return outcome
    // Another program used the faucet's sequence number first: nothing was deposited. A node that lags still shows the old number.
    attempt.isRecorded = false
    await setTimeout(depositor.network.pollMs)
    return undefined
  }

  return { grant }
}
