import { xdr } from '@stellar/stellar-sdk'
import { INT64_MAX, readAccount, withBalance, writeAccount } from '../state/account.ts'
import type { LedgerContext } from '../state/ledger-context.ts'
import type { State } from '../state/state.ts'
import { feeEvent } from '../transaction/asset-events.ts'
import type { Envelope } from '../transaction/envelope.ts'
import { inclusionFee } from '../transaction/envelope.ts'
import { baseCharge } from '../transaction/envelope-validity.ts'
import { envelopeResult } from '../transaction/results.ts'
import { BASE_FEE } from '../transaction/validity.ts'
import { type Application, applyEnvelope } from './application.ts'

/** One transaction of a closed ledger, whole. */
export interface ClosedTransaction {
  readonly envelope: Envelope
  readonly ok: boolean
  readonly result: xdr.TransactionResult
  readonly meta: xdr.TransactionMetaV4
}

const STAGE = xdr.TransactionEventStage

/**
 * Applies a set of transactions to `state`: all fees first, then classic transactions, then Soroban ones, and the
 * refunds after all of them (protocol 23). Between accounts the order is that of their hashes: fixed, and nothing that
 * a client could rely on.
 * @returns what became of each, in order of application, and the stroops that went to the fee pool
 */
export function applyLedger(
  envelopes: readonly Envelope[],
  state: State,
  ledger: LedgerContext,
): { transactions: ClosedTransaction[]; fees: bigint } {
  const ordered = orderOf(envelopes)
  const charges = ordered.map((envelope) => takeFee(envelope, state, ledger))
  const applications = ordered.map((envelope) => applyEnvelope(envelope, state, ledger))
  let fees = 0n
  const transactions = ordered.map((envelope, index) => {
    const application = applications[index]
    const charge = charges[index]
    if (!application || charge === undefined) throw new Error('every transaction is charged and applied')
    const refund = giveBack(envelope, application, state, ledger)
    fees += charge - refund
    return finish(envelope, application, charge, refund, ledger)
  })
  return { transactions, fees }
}

function orderOf(envelopes: readonly Envelope[]): Envelope[] {
  const place = ({ inner, fullHash }: Envelope) => `${inner.isSoroban ? 1 : 0}${fullHash}`
  return envelopes.toSorted((left, right) => (place(left) < place(right) ? -1 : 1))
}

/** No surge, so at most the base fee is taken, however high the bid; never more than is there. */
function takeFee(envelope: Envelope, state: State, { sequence }: LedgerContext): bigint {
  const payer = readAccount(state, envelope.feeSource)
  if (!payer) return 0n
  const bid = inclusionFee(envelope)
  const base = BASE_FEE * BigInt(envelope.operations)
  const full = bid < base ? envelope.resourceFee + bid : baseCharge(envelope)
  const charge = full < payer.balance ? full : payer.balance
  writeAccount(state, withBalance(payer, payer.balance - charge), sequence)
  return charge
}

/** What the resource fee did not buy, to the fee source; nothing if that account is gone or cannot take it. */
function giveBack(envelope: Envelope, { soroban }: Application, state: State, { sequence }: LedgerContext): bigint {
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
): ClosedTransaction {
  const { outcome, changesBefore, operations, soroban, diagnostics } = application
  const event = (stage: xdr.TransactionEventStage, amount: bigint) =>
    new xdr.TransactionEvent({ stage, event: feeEvent(passphrase, envelope.feeSource, amount) })
  const events = [event(STAGE.transactionEventStageBeforeAllTxs, charge)]
  if (refund > 0n) events.push(event(STAGE.transactionEventStageAfterAllTxs, -refund))
  return {
    envelope,
    ok: outcome.code === 'txSuccess',
    result: envelopeResult(envelope, outcome, charge - refund),
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
