import { availableBalance, readAccount } from '../state/account.ts'
import type { State } from '../state/state.ts'
import type { Envelope } from './envelope.ts'
import { inclusionFee } from './envelope.ts'
import type { Moment } from './preconditions.ts'
import type { Failure } from './results.ts'
import { checkSignatures, signersOf } from './signatures.ts'
import { hasFeeShape } from './soroban-validity.ts'
import { LOW, thresholdOf } from './thresholds.ts'
import { BASE_FEE, checkTransaction } from './validity.ts'

/** The maximum charge for an envelope without surge pricing, in stroops. */
function baseCharge(envelope: Envelope): bigint {
  return envelope.resourceFee + BASE_FEE * BigInt(envelope.operations)
}

/** The reason why an envelope can't be in the next ledger, with the fee in core's result. */
export type EnvelopeFailure = { readonly failure: Failure; readonly isInner: boolean; readonly feeCharged: bigint }

/** Checks an envelope for the next ledger, a fee bump as in CAP-15. */
export function checkEnvelope(envelope: Envelope, state: State, moment: Moment): EnvelopeFailure | undefined {
  const charge = baseCharge(envelope)
  const judgement = { state, moment, isApplying: false }
  if (!envelope.bump) {
    const failure = checkTransaction(envelope.inner, { ...judgement, isInsideFeeBump: false })
    return failure && { failure, isInner: false, feeCharged: hasFeeShape(envelope.inner) ? charge : 0n }
  }
  const outer = checkFeeBump(envelope, state)
  if (outer) return { feeCharged: charge, ...outer, isInner: false }
  const failure = checkTransaction(envelope.inner, { ...judgement, isInsideFeeBump: true })
  return failure && { failure, isInner: true, feeCharged: charge }
}

/** CAP-15: the outer envelope, in core's order. */
function checkFeeBump(envelope: Envelope, state: State): { failure: Failure; feeCharged?: bigint } | undefined {
  const { bump, inner } = envelope
  if (!bump) return undefined
  if (!hasFeeShape(inner)) return { failure: { code: 'txMalformed' }, feeCharged: 0n }
  const outerOperations = BigInt(envelope.operations)
  const innerOperations = BigInt(Math.max(1, inner.tx.operations.length))
  const offered = inclusionFee(envelope)
  if (offered < BASE_FEE * outerOperations) return { failure: { code: 'txInsufficientFee' } }
  const innerOffered = BigInt(inner.tx.fee) - envelope.resourceFee
  if (innerOffered < 0n && !inner.isSoroban) return { failure: { code: 'txMalformed' }, feeCharged: 0n }
  if (innerOffered >= 0n && offered * innerOperations < innerOffered * outerOperations) {
    const needed = (innerOffered * outerOperations + innerOperations - 1n) / innerOperations
    return { failure: { code: 'txInsufficientFee' }, feeCharged: needed }
  }
  const payer = readAccount(state, envelope.feeSource)
  if (!payer) return { failure: { code: 'txNoAccount' } }
  const checker = checkSignatures(bump)
  if (!checker.carries(signersOf(payer), thresholdOf(payer, LOW))) return { failure: { code: 'txBadAuth' } }
  if (availableBalance(payer) < bump.fee) return { failure: { code: 'txInsufficientBalance' } }
  return checker.allUsed() ? undefined : { failure: { code: 'txBadAuthExtra' } }
}
