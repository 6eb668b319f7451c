import { availableBalance, readAccount } from '../state/account.ts'
import type { State } from '../state/state.ts'
import type { Envelope } from './envelope.ts'
import { inclusionFee } from './envelope.ts'
import { checkEnvelope, type EnvelopeFailure } from './envelope-validity.ts'
import type { Moment } from './preconditions.ts'
import type { Failure } from './results.ts'
import { resourceFault } from './soroban-validity.ts'

export type Verdict =
  | { readonly status: 'PENDING' | 'DUPLICATE' | 'TRY_AGAIN_LATER' }
  | ({ readonly status: 'ERROR' } & EnvelopeFailure)

/** The transactions that wait for the next ledger: stellar-core's two queues behind one door (section 2.4's order). */
export interface Queue {
  add(envelope: Envelope, state: State, moment: Moment): Verdict
  /**
   * What the next ledger takes, classic transactions before Soroban ones. What has become invalid is banned; what
   * finds no room stays.
   */
  take(state: State, moment: Moment): Envelope[]
  /** After a ledger closed: what it applied is banned, what has waited too long is dropped. */
  shift(applied: readonly Envelope[]): void
}

/** Ledgers for which an applied or dropped envelope is refused. */
const BAN_LEDGERS = 10
/** Ledgers for which a transaction may wait. */
const PENDING_LEDGERS = 4
/** A fee bump that takes a pending one's place must offer this many times its rate. */
const REPLACEMENT_FACTOR = 10n
/** Room per ledger: operations of classic transactions, and Soroban transactions. */
const LEDGER_LIMITS = { classic: 1000, soroban: 2000 }

interface Pending {
  readonly envelope: Envelope
  age: number
}

type Lane = 'classic' | 'soroban'

const laneOf = (envelope: Envelope): Lane => (envelope.inner.isSoroban ? 'soroban' : 'classic')

export function openQueue(): Queue {
  const lanes: Record<Lane, Map<string, Pending>> = { classic: new Map(), soroban: new Map() }
  /** stroops that each account owes as fee source of what is pending */
  const fees: Record<Lane, Map<string, bigint>> = { classic: new Map(), soroban: new Map() }
  const bans: Set<string>[] = Array.from({ length: BAN_LEDGERS }, () => new Set())

  const owed = (lane: Lane, account: string) => fees[lane].get(account) ?? 0n
  const isBusy = (lane: Lane, account: string) => lanes[lane].has(account) || fees[lane].has(account)

  const owe = (lane: Lane, account: string, amount: bigint) => {
    const total = owed(lane, account) + amount
    if (total > 0n) fees[lane].set(account, total)
    else fees[lane].delete(account)
  }
  const insert = (envelope: Envelope) => {
    remove(lanes[laneOf(envelope)].get(envelope.inner.source)?.envelope)
    lanes[laneOf(envelope)].set(envelope.inner.source, { envelope, age: 0 })
    owe(laneOf(envelope), envelope.feeSource, envelope.fee)
  }
  const remove = (envelope: Envelope | undefined) => {
    if (!envelope || !lanes[laneOf(envelope)].delete(envelope.inner.source)) return
    owe(laneOf(envelope), envelope.feeSource, -envelope.fee)
  }
  const drop = (envelope: Envelope) => {
    remove(envelope)
    bans[0]?.add(envelope.fullHash)
  }

  /** The place of a pending transaction of the same account may be taken by a dearer fee bump only. */
  const admit = (envelope: Envelope, pending: Envelope): Verdict | undefined => {
    if (isDuplicate(pending, envelope)) return { status: 'DUPLICATE' }
    if (envelope.inner.tx.seqNum < pending.inner.tx.seqNum) return error({ code: 'txBadSeq' })
    const { inner } = envelope
    const fault = inner.isSoroban && inner.soroban ? resourceFault(inner, inner.soroban) : undefined
    if (fault !== undefined) return error({ code: 'txSorobanInvalid', diagnostic: fault })
    if (!envelope.bump || inner.tx.seqNum !== pending.inner.tx.seqNum) return { status: 'TRY_AGAIN_LATER' }
    const needed = REPLACEMENT_FACTOR * inclusionFee(pending) * BigInt(envelope.operations)
    const operations = BigInt(pending.operations)
    if (inclusionFee(envelope) * operations >= needed) return undefined
    return error({ code: 'txInsufficientFee' }, (needed + operations - 1n) / operations + envelope.resourceFee)
  }

  return {
    add(envelope, state, moment) {
      const lane = laneOf(envelope)
      const { source } = envelope.inner
      if (isBusy(lane === 'classic' ? 'soroban' : 'classic', source)) return { status: 'TRY_AGAIN_LATER' }
      if (bans.some((ban) => ban.has(envelope.fullHash))) return { status: 'TRY_AGAIN_LATER' }
      if (envelope.fee < 0n || inclusionFee(envelope) < 0n) return error({ code: 'txMalformed' })
      const pending = lanes[lane].get(source)?.envelope
      const refusal = pending && admit(envelope, pending)
      if (refusal) return refusal
      const invalid = checkEnvelope(envelope, state, moment)
      if (invalid) return { status: 'ERROR', ...invalid }
      const freed = pending?.feeSource === envelope.feeSource ? pending.fee : 0n
      const payer = readAccount(state, envelope.feeSource)
      if (!payer || availableBalance(payer) - envelope.fee + freed < owed(lane, envelope.feeSource)) {
        return error({ code: 'txInsufficientBalance' })
      }
      insert(envelope)
      return { status: 'PENDING' }
    },

    take(state, moment) {
      const taken: Envelope[] = []
      for (const lane of ['classic', 'soroban'] as const) {
        let room = LEDGER_LIMITS[lane]
        for (const { envelope } of Array.from(lanes[lane].values())) {
          if (checkEnvelope(envelope, state, moment)) {
            drop(envelope)
            continue
          }
          room -= lane === 'classic' ? envelope.operations : 1
          if (room < 0) break
          taken.push(envelope)
        }
      }
      return taken
    },

    shift(applied) {
      bans.unshift(new Set())
      bans.length = BAN_LEDGERS
      for (const envelope of applied) drop(envelope)
      for (const lane of Object.values(lanes)) {
        for (const pending of Array.from(lane.values())) {
          pending.age += 1
          if (pending.age >= PENDING_LEDGERS) drop(pending.envelope)
        }
      }
    },
  }
}

/** The same envelope, or the transaction inside the fee bump that is pending. */
function isDuplicate(pending: Envelope, envelope: Envelope): boolean {
  if (pending.fullHash === envelope.fullHash) return true
  return pending.bump !== undefined && !envelope.bump && pending.innerFullHash === envelope.fullHash
}

/** What the queue itself refuses has no charge, except where it names the fee that would do. */
function error(failure: Failure, feeCharged = 0n): Verdict {
  return { status: 'ERROR', failure, isInner: false, feeCharged }
}
