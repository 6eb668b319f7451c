import { xdr } from '@stellar/stellar-sdk'
import { INT64_MAX, readAccount, withBalance, writeAccount } from '../state/account.ts'
import { metaChanges } from '../state/entry.ts'
import type { LedgerContext } from '../state/ledger-context.ts'
import type { State } from '../state/state.ts'
import { feeEvent } from '../transaction/asset-events.ts'
import type { Envelope } from '../transaction/envelope.ts'
import { inclusionFee } from '../transaction/envelope.ts'
import { kindOf } from '../transaction/ledger-room.ts'
import { envelopeResult } from '../transaction/results.ts'
import type { TransactionSet } from '../transaction/transaction-set.ts'
import { type Application, applyEnvelope } from './application.ts'

/** One transaction of a closed ledger, with its effects. */
export interface ClosedTransaction {
  readonly envelope: Envelope
  readonly ok: boolean
  readonly result: xdr.TransactionResult
  readonly meta: xdr.TransactionMetaV4
  /** the changes made by the fee charge, and by the refund */
  readonly feeChanges: xdr.LedgerEntryChange[]
  readonly refundChanges: xdr.LedgerEntryChange[]
  /** inclusion fee in stroops as fee statistics count it: per operation, or the total of a contract call */
  readonly inclusionFee: bigint
}

const STAGE = xdr.TransactionEventStage

/**
 * Applies a set of transactions to `state`: all fees first, then classic transactions, then Soroban ones, and the
 * refunds after all of them (protocol 23).
 * @returns the outcome of each, in order of application, and the stroops added to the fee pool
 */
export function applyLedger(
  set: TransactionSet,
  state: State,
  ledger: LedgerContext,
): { transactions: ClosedTransaction[]; fees: bigint } {
  const ordered = orderOf(set)
  const charges = ordered.map((envelope) => {
    const layer = state.fork()
    const amount = takeFee(envelope, set[kindOf(envelope)].baseFee, layer, ledger)
    return { amount, changes: commit(layer) }
  })
  const applications = ordered.map((envelope) => applyEnvelope(envelope, state, ledger))
  let fees = 0n
  const transactions = ordered.map((envelope, index) => {
    const application = applications[index]
    const charge = charges[index]
    if (!application || !charge) throw new Error('every transaction is charged and applied')
    const layer = state.fork()
    const refund = refundUnused(envelope, application, layer, ledger)
    fees += charge.amount - refund
    const finished = finish(envelope, application, charge.amount, refund, ledger)
    return { ...finished, feeChanges: charge.changes, refundChanges: commit(layer) }
  })
  return { transactions, fees }
}

/** The transactions of a set in the order in which they are applied. */
export function orderOf({ classic, soroban }: TransactionSet): Envelope[] {
  return [...classic.stages, ...soroban.stages].flat(2)
}

function commit(layer: State): xdr.LedgerEntryChange[] {
  const changes = metaChanges(layer.changes())
  layer.commit()
  return changes
}

/** Charges at most this ledger's base fee, however high the bid, and never more than the balance. */
function takeFee(envelope: Envelope, baseFee: bigint, state: State, { sequence }: LedgerContext): bigint {
  const payer = readAccount(state, envelope.feeSource)
  if (!payer) return 0n
  const bid = inclusionFee(envelope)
  const base = baseFee * BigInt(envelope.operations)
  const full = envelope.resourceFee + (bid < base ? bid : base)
  const charge = full < payer.balance ? full : payer.balance
  writeAccount(state, withBalance(payer, payer.balance - charge), sequence)
  return charge
}

/** Refunds the unused resource fee to the fee source, unless that account was removed or its balance would overflow. */
function refundUnused(envelope: Envelope, { soroban }: Application, state: State, { sequence }: LedgerContext): bigint {
  if (!soroban) return 0n
  const refund = envelope.resourceFee - soroban.charge.nonRefundable - soroban.charge.refundable
  const payer = readAccount(state, envelope.feeSource)
  if (!payer || refund <= 0n || payer.balance + refund > INT64_MAX) return 0n
  writeAccount(state, withBalance(payer, payer.balance + refund), sequence)
  return refund
}

function finish(
  envelope: Envelope,
  application: Application,
  charge: bigint,
  refund: bigint,
  { passphrase }: LedgerContext,
): Omit<ClosedTransaction, 'feeChanges' | 'refundChanges'> {
  const { outcome, changesBefore, operations, soroban, diagnostics } = application
  const event = (stage: xdr.TransactionEventStage, amount: bigint) =>
    new xdr.TransactionEvent({ stage, event: feeEvent(passphrase, envelope.feeSource, amount) })
  const events = [event(STAGE.transactionEventStageBeforeAllTxs, charge)]
  if (refund > 0n) events.push(event(STAGE.transactionEventStageAfterAllTxs, -refund))
  const spent = charge - refund
  const used = soroban ? soroban.charge.nonRefundable + soroban.charge.refundable : 0n
  return {
    envelope,
    inclusionFee: soroban ? spent - used : spent / BigInt(envelope.inner.tx.operations.length),
    ok: outcome.code === 'txSuccess',
    result: envelopeResult(envelope, outcome, spent),
    meta: new xdr.TransactionMetaV4({
      ext: xdr.ExtensionPoint.v0(),
      txChangesBefore: changesBefore,
      operations,
      txChangesAfter: [],
      sorobanMeta: soroban ? sorobanMeta(soroban) : null,
      events,
      diagnosticEvents: diagnostics,
    }),
  }
}

function sorobanMeta({ charge, returnValue }: NonNullable<Application['soroban']>): xdr.SorobanTransactionMetaV2 {
  const split = new xdr.SorobanTransactionMetaExtV1({
    ext: xdr.ExtensionPoint.v0(),
    totalNonRefundableResourceFeeCharged: charge.nonRefundable,
    totalRefundableResourceFeeCharged: charge.refundable,
    rentFeeCharged: charge.rent,
  })
  return new xdr.SorobanTransactionMetaV2({ ext: xdr.SorobanTransactionMetaExt.v1(split), returnValue })
}
