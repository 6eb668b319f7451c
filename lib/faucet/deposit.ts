import { setTimeout } from 'node:timers/promises'
import { Account, type Keypair } from '@stellar/stellar-sdk'
import type { Transfer } from '#drizzle/schema/transfers.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { readAccount } from '#lib/stellar/account.ts'
import { readLatestLedger } from '#lib/stellar/latest-ledger.ts'
import { ledgerUnreachable } from '#lib/stellar/ledger-error.ts'
import type { Network } from '#lib/stellar/network.ts'
import { recordEnvelope } from '#lib/transfers/record.ts'
import { findOpenTransfer, type RecordedTransfer } from '#lib/transfers/rows.ts'
import type { Tracker } from '#lib/transfers/track.ts'
import { buildDeposit } from '#lib/wallet/calls.ts'
import { WalletError } from '#lib/wallet/wallet-error.ts'
import { type Claim, linkDeposit, returnGrant } from './grants.ts'

/**
 * How long (seconds) a signed deposit is valid: long enough for several ledgers, short enough to learn of its expiry
 * soon.
 */
const VALIDITY = 30

/** Stroops: an inclusion bid high enough for a busy network, and a margin on top of the simulated resource fee. */
const INCLUSION_FEE = 10_000
const MARGIN = 100_000n

/** A signed deposit that has not been sent. */
interface SignedDeposit {
  /** the account that pays it, G… */
  faucet: string
  /** base64 XDR, and its hash, 64 hex digits */
  signed: string
  hash: string
  /** the faucet's sequence number */
  sequenceNumber: bigint
  /** unix seconds */
  maxTime: number
  /** the ledger of the response in which the sequence number was unused */
  recordedLedger: number
}

/** The account that signs deposits, and its token. */
export interface Depositor {
  network: Network
  /** the confidential token, C… */
  token: string
  keypair: Keypair
  now: () => Date
}

/**
 * Signs a deposit of `amount` base units into the confidential balance of `to`, with the faucet's next sequence number
 * from the ledger. Submits nothing.
 * @throws LedgerError `unavailable`; WalletError `would-fail`
 */
async function signDeposit(
  { network, token, keypair }: Depositor,
  { to, amount }: { to: string; amount: bigint },
): Promise<SignedDeposit> {
  const faucet = keypair.publicKey()
  const [{ account, latestLedger }, { closedAt }] = await Promise.all([
    readAccount(network.server, faucet),
    readLatestLedger(network),
  ])
  if (!account) throw new WalletError('would-fail', 'the faucet has no account on the ledger')
  const deployment = {
    rpc: network.server,
    passphrase: network.passphrase,
    token,
    // The ledger checks the time bounds by its own clock.
    now: () => closedAt * 1000,
  }
  const options = {
    source: new Account(faucet, String(account.seqNum)),
    seconds: VALIDITY,
    inclusionFee: INCLUSION_FEE,
    margin: MARGIN,
  }
  const signed = await buildDeposit(deployment, keypair, { to, amount }, options).catch((cause: unknown) => {
    throw cause instanceof WalletError ? cause : ledgerUnreachable(cause)
  })
  return {
    faucet,
    signed: signed.signedXdr,
    hash: signed.hash,
    sequenceNumber: account.seqNum + 1n,
    maxTime: signed.maxTime,
    recordedLedger: latestLedger,
  }
}

/** Submits the deposits of claimed grants one at a time: an account has at most one open transfer. */
export interface Granting {
  /**
   * Resolves to the settled deposit of a claim. Undefined if `patience` (ms) ran out, or the claim has no deposit and
   * can have none.
   */
  grant(db: Database, claim: Claim & { amount: bigint }, patience: number): Promise<Transfer | undefined>
}

export function openGranting(depositor: Depositor & { tracker: Tracker }): Granting {
  const { tracker, now } = depositor
  const account = depositor.keypair.publicKey()
  /** requests of this process take turns; across processes the faucet's one open transfer makes them wait */
  let turn: Promise<unknown> = Promise.resolve()

  async function grant(db: Database, claim: Claim & { amount: bigint }, patience: number) {
    const deadline = now().getTime() + patience
    const outcome = turn.then(() => attempt(db, claim, deadline))
    turn = outcome.catch(() => undefined)
    return await Promise.race([outcome, setTimeout(patience, undefined, { ref: false })])
  }

  async function attempt(
    db: Database,
    claim: Claim & { amount: bigint },
    deadline: number,
  ): Promise<Transfer | undefined> {
    const left = () => deadline - now().getTime()
    while (left() > 0) {
      const ended = await step(db, claim, left).catch(async (error: unknown): Promise<'again'> => {
        log('error', 'faucet', { account: claim.account, failure: describeFailure(error) })
        await setTimeout(depositor.network.pollMs)
        return 'again'
      })
      if (ended !== 'again') return ended
    }
    return undefined
  }

  async function step(
    db: Database,
    claim: Claim & { amount: bigint },
    left: () => number,
  ): Promise<Transfer | undefined | 'again'> {
    const open = await findOpenTransfer(db, account)
    if (open) {
      await tracker.track([open.id], { waitMs: left() })
      return 'again'
    }
    const deposit = await sign(db, claim)
    if (!deposit) return undefined
    const recorded = await record(db, claim, deposit)
    if (recorded === 'returned') return undefined
    // Another process was first: its deposit uses the same sequence number.
    if (recorded === 'taken') return 'again'
    const sent = await tracker.submit(recorded, { innerHash: deposit.hash, isNew: true, waitMs: left() })
    // A deposit that the network refused may still be applied, so wait for its outcome.
    const [outcome] = sent.kind === 'refused' ? await tracker.track([recorded.transfer.id], { waitMs: left() }) : [sent]
    return outcome?.kind === 'settled' ? outcome.transfer : undefined
  }

  async function sign(db: Database, claim: Claim & { amount: bigint }): Promise<SignedDeposit | undefined> {
    try {
      return await signDeposit(depositor, { to: claim.account, amount: claim.amount })
    } catch (error) {
      if (!(error instanceof WalletError && error.code === 'would-fail')) throw error
      log('error', 'faucet deposit impossible', { account: claim.account, failure: error.message })
      await returnGrant(db, claim, error.contractError ?? null)
      return undefined
    }
  }

  function record(
    db: Database,
    claim: Claim,
    deposit: SignedDeposit,
  ): Promise<RecordedTransfer | 'returned' | 'taken'> {
    const { faucet, signed, hash: innerHash, maxTime, sequenceNumber, recordedLedger } = deposit
    const createdAt = now()
    const quotaDay = createdAt.toISOString().slice(0, 10)
    const transfer = {
      kind: 'deposit' as const,
      account: faucet,
      sequenceNumber,
      recipient: claim.account,
      quotaDay,
      recordedLedger,
      createdAt,
    }
    return transact(db, async (tx): Promise<RecordedTransfer | 'returned' | 'taken'> => {
      const recording = await recordEnvelope(tx, transfer, { innerHash, outerHash: null, signed, bid: 0n, maxTime })
      if (recording.kind !== 'begun') throw new Taken()
      if (!(await linkDeposit(tx, claim, recording.transfer.id))) throw new Returned()
      return recording
    }).catch((error: unknown) => {
      if (error instanceof Taken) return 'taken' as const
      if (error instanceof Returned) return 'returned' as const
      throw error
    })
  }

  return { grant }
}

/** Thrown inside the SQL transaction to roll it back. */
class Taken extends Error {}
class Returned extends Error {}
