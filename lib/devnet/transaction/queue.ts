import { describeFailure, log } from '#lib/observability/log.ts'
import { availableBalance, readAccount } from '../state/account.ts'
import type { State } from '../state/state.ts'
import { type Envelope, inclusionFee } from './envelope.ts'
import { checkEnvelope, type EnvelopeFailure } from './envelope-validity.ts'
import { type Kind, kindOf, type LedgerLimits, queueRoom } from './ledger-room.ts'
import type { Moment } from './preconditions.ts'
import { openQueueRoom } from './queue-room.ts'
import type { Failure } from './results.ts'
import { resourceFault } from './soroban-validity.ts'
import { assemble, type TransactionSet } from './transaction-set.ts'

export type Verdict =
  | { readonly status: 'PENDING' | 'DUPLICATE' | 'TRY_AGAIN_LATER' }
  | ({ readonly status: 'ERROR' } & EnvelopeFailure)

/** The pending transactions, in stellar-core's two queues, checked in core's order. */
export interface Queue {
  add(envelope: Envelope, state: State, moment: Moment): Verdict
  /** The next ledger's transactions, except `without`. Drops transactions that have become invalid. */
  take(state: State, moment: Moment, without: ReadonlySet<Envelope>): TransactionSet
  /** Drops and bans the transactions that are no longer valid. */
  dropInvalid(state: State, moment: Moment): void
  pending(): Envelope[]
  /** Removes an envelope and bans it. */
  drop(envelope: Envelope): void
  /** After a ledger closes: bans its transactions, and drops transactions that have waited too long. */
  shift(applied: readonly Envelope[]): void
}

/** Ledgers for which an applied or dropped envelope is banned. */
const BAN_LEDGERS = 10
/** Ledgers for which a transaction stays pending. */
const PENDING_LEDGERS = 4
/** A fee bump that replaces a pending one must bid this many times its rate. */
const REPLACEMENT_FACTOR = 10n

interface Pending {
  readonly envelope: Envelope
  age: number
}

export function openQueue(limits: LedgerLimits): Queue {
  const queues: Record<Kind, Map<string, Pending>> = { classic: new Map(), soroban: new Map() }
  /** total pending fees of each fee source, in stroops */
  const fees: Record<Kind, Map<string, bigint>> = { classic: new Map(), soroban: new Map() }
  const rooms = {
    classic: openQueueRoom(queueRoom(limits, 'classic')),
    soroban: openQueueRoom(queueRoom(limits, 'soroban')),
  }
  const bans: Set<string>[] = Array.from({ length: BAN_LEDGERS }, () => new Set())

  const owed = (kind: Kind, account: string) => fees[kind].get(account) ?? 0n
  const isBusy = (kind: Kind, account: string) => queues[kind].has(account) || fees[kind].has(account)

  const owe = (kind: Kind, account: string, amount: bigint) => {
    const total = owed(kind, account) + amount
    if (total > 0n) fees[kind].set(account, total)
    else fees[kind].delete(account)
  }
  const insert = (envelope: Envelope) => {
    const kind = kindOf(envelope)
    remove(queues[kind].get(envelope.inner.source)?.envelope)
    queues[kind].set(envelope.inner.source, { envelope, age: 0 })
    rooms[kind].add(envelope)
    owe(kind, envelope.feeSource, envelope.fee)
  }
  const remove = (envelope: Envelope | undefined) => {
    if (!envelope) return
    const kind = kindOf(envelope)
    const pending = queues[kind].get(envelope.inner.source)?.envelope
    if (!pending) return
    queues[kind].delete(envelope.inner.source)
    rooms[kind].remove(pending)
    owe(kind, pending.feeSource, -pending.fee)
  }
  const ban = (envelope: Envelope) => void bans[0]?.add(envelope.fullHash)
  const drop = (envelope: Envelope) => {
    remove(envelope)
    ban(envelope)
  }

  const waiting = (kind: Kind) => Array.from(queues[kind].values(), ({ envelope }) => envelope)
  const dropInvalid = (state: State, moment: Moment, without: ReadonlySet<Envelope>) => {
    for (const envelope of [...waiting('classic'), ...waiting('soroban')]) {
      if (!without.has(envelope) && !isValid(envelope, state, moment)) drop(envelope)
    }
  }

  /** Only a fee bump with a higher bid can replace a pending transaction of the same account. */
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
      const kind = kindOf(envelope)
      const { source } = envelope.inner
      if (isBusy(kind === 'classic' ? 'soroban' : 'classic', source)) return { status: 'TRY_AGAIN_LATER' }
      if (bans.some((banned) => banned.has(envelope.fullHash))) return { status: 'TRY_AGAIN_LATER' }
      if (envelope.fee < 0n || inclusionFee(envelope) < 0n) return error({ code: 'txMalformed' })
      const pending = queues[kind].get(source)?.envelope
      const refusal = pending && admit(envelope, pending)
      if (refusal) return refusal
      const room = rooms[kind].find(envelope, pending)
      if ('needed' in room) {
        ban(envelope)
        if (room.needed === 0n) return { status: 'TRY_AGAIN_LATER' }
        return error({ code: 'txInsufficientFee' }, room.needed)
      }
      const invalid = checkEnvelope(envelope, state, moment)
      if (invalid) return { status: 'ERROR', ...invalid }
      const freed = pending?.feeSource === envelope.feeSource ? pending.fee : 0n
      const payer = readAccount(state, envelope.feeSource)
      if (!payer || availableBalance(payer) - envelope.fee + freed < owed(kind, envelope.feeSource)) {
        return error({ code: 'txInsufficientBalance' })
      }
      for (const evicted of room.evicted) {
        drop(evicted)
        rooms[kind].beat(evicted)
      }
      insert(envelope)
      return { status: 'PENDING' }
    },

    take(state, moment, without) {
      dropInvalid(state, moment, without)
      const phase = (kind: Kind) =>
        assemble(
          kind,
          waiting(kind).filter((envelope) => !without.has(envelope)),
          limits,
        )
      return { classic: phase('classic'), soroban: phase('soroban') }
    },

    dropInvalid: (state, moment) => dropInvalid(state, moment, new Set()),
    pending: () => [...waiting('classic'), ...waiting('soroban')],
    drop,

    shift(applied) {
      bans.unshift(new Set())
      bans.length = BAN_LEDGERS
      for (const envelope of applied) drop(envelope)
      for (const queue of Object.values(queues)) {
        for (const pending of Array.from(queue.values())) {
          pending.age += 1
          if (pending.age >= PENDING_LEDGERS) drop(pending.envelope)
        }
      }
      for (const room of Object.values(rooms)) room.forget()
    },
  }
}

/** A transaction whose check throws isn't valid: it must not prevent every later ledger from closing. */
function isValid(envelope: Envelope, state: State, moment: Moment): boolean {
  try {
    return checkEnvelope(envelope, state, moment) === undefined
  } catch (cause) {
    log('error', 'transaction dropped', { hash: envelope.hash, failure: describeFailure(cause) })
    return false
  }
}

/** The same envelope, or the inner transaction of the pending fee bump. */
function isDuplicate(pending: Envelope, envelope: Envelope): boolean {
  if (pending.fullHash === envelope.fullHash) return true
  return pending.bump !== undefined && !envelope.bump && pending.innerFullHash === envelope.fullHash
}

/** A rejection by the queue itself reports no fee, unless it names a sufficient one. */
function error(failure: Failure, feeCharged = 0n): Verdict {
  return { status: 'ERROR', failure, isInner: false, feeCharged }
}
