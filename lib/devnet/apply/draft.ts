import { xdr } from '@stellar/stellar-sdk'
import { describeFailure, log } from '#lib/observability/log.ts'
import { ProofUnchecked } from '../host/proofs.ts'
import { encodeData } from '../state/entry.ts'
import type { LedgerContext } from '../state/ledger-context.ts'
import type { LedgerRecord } from '../state/record.ts'
import type { State, StoredEntry } from '../state/state.ts'
import type { Envelope } from '../transaction/envelope.ts'
import { entryBytes } from '../transaction/fees.ts'
import { NO_TRANSACTIONS, type TransactionSet } from '../transaction/transaction-set.ts'
import { type applyLedger, orderOf } from './close.ts'
import { transactionSet } from './close-meta.ts'
import { makeHeader } from './header.ts'
import { recordLedger, recordPhases } from './ledger-record.ts'

/** The parts of the last ledger that the next one builds on. */
export interface Tip {
  readonly hash: Uint8Array
  /** stroops */
  readonly feePool: bigint
  readonly sequence: number
  readonly closeTime: number
  /** bytes of all contract data and code */
  readonly sorobanBytes: number
}

/** A complete ledger that isn't stored yet. */
export interface Draft {
  /** contains its changes */
  readonly layer: State
  readonly closed: { readonly record: LedgerRecord; readonly body: Uint8Array }
  readonly set: TransactionSet
  readonly tip: Tip
}

/** Drafts the ledger whose changes are in `layer`. */
export function writeDraft(input: {
  readonly ledger: LedgerContext
  readonly tip: Tip
  readonly layer: State
  readonly set: TransactionSet
  readonly outcome: ReturnType<typeof applyLedger>
}): Draft {
  const { ledger, tip, layer, set, outcome } = input
  const { sequence, closeTime } = ledger
  const { transactions } = outcome
  const phases = recordPhases(set)
  const feePool = tip.feePool + outcome.fees
  const { header, hash } = makeHeader({
    previousHash: tip.hash,
    sequence,
    closeTime,
    feePool,
    transactions: transactionSet(
      tip.hash,
      phases,
      transactions.map(({ envelope }) => xdr.TransactionEnvelope.fromXdr(envelope.xdr, 'base64')),
    ),
    results: transactions.map(
      ({ envelope, result }) => new xdr.TransactionResultPair({ transactionHash: envelope.hash, result }),
    ),
    protocol: ledger.protocol,
    changes: layer.changes().map(({ key, after }) => `${key}:${after ? encodeData(after) : null}`),
  })
  const sorobanBytes = tip.sorobanBytes + sorobanGrowth(layer)
  const closed = recordLedger({ sequence, closeTime, hash, header, sorobanBytes, phases, transactions })
  return { layer, closed, set, tip: { hash, feePool, sequence, closeTime, sorobanBytes } }
}

/** The bytes of contract data and code that a layer adds. */
function sorobanGrowth(layer: State): number {
  const bytesOf = (entry: StoredEntry | undefined) =>
    entry?.data.type === 'contractData' || entry?.data.type === 'contractCode' ? entryBytes(entry) : 0
  return layer.changes().reduce((sum, { before, after }) => sum + bytesOf(after) - bytesOf(before), 0)
}

/**
 * Drafts a ledger of pending transactions. A call whose proof can't be checked now is left for a later ledger. A
 * transaction that hits a bug here is dropped, because it would prevent this ledger and every later one from closing.
 */
export function draftWaiting(steps: {
  take: (without: ReadonlySet<Envelope>) => TransactionSet
  /** @throws if a transaction hits a bug */
  draft: (set: TransactionSet) => Draft
  drop: (envelope: Envelope) => void
}): Draft {
  const { take, draft, drop } = steps
  const left = new Set<Envelope>()
  for (;;) {
    const set = take(left)
    try {
      return draft(set)
    } catch (cause) {
      if (orderOf(set).length === 0) throw cause
      for (const [envelope, fault] of findFaults(set, draft, cause)) {
        const isPostponed = fault instanceof ProofUnchecked
        const event = isPostponed ? 'call left for a later ledger' : 'transaction dropped'
        log(isPostponed ? 'info' : 'error', event, { hash: envelope.hash, failure: describeFailure(fault) })
        if (isPostponed) left.add(envelope)
        else drop(envelope)
      }
    }
  }
}

/** The transactions that fail when drafted alone, each with its error, or all of them if none does. */
function findFaults(
  set: TransactionSet,
  draft: (set: TransactionSet) => Draft,
  cause: unknown,
): ReadonlyMap<Envelope, unknown> {
  const faults = new Map<Envelope, unknown>()
  for (const envelope of orderOf(set)) {
    try {
      draft(alone(set, envelope))
    } catch (fault) {
      faults.set(envelope, fault)
    }
  }
  return faults.size > 0 ? faults : new Map(orderOf(set).map((envelope) => [envelope, cause]))
}

function alone({ classic, soroban }: TransactionSet, envelope: Envelope): TransactionSet {
  const stages = [[[envelope]]]
  return envelope.inner.isSoroban
    ? { ...NO_TRANSACTIONS, soroban: { ...soroban, stages } }
    : { ...NO_TRANSACTIONS, classic: { ...classic, stages } }
}
