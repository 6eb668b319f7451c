import { xdr } from '@stellar/stellar-sdk'
import { applyBumpSequence, checkBumpSequence } from './bump-sequence.ts'
import { applyChangeTrust, checkChangeTrust } from './change-trust.ts'
import type { Applied, OperationContext } from './context.ts'
import { applyCreateAccount, checkCreateAccount } from './create-account.ts'
import { applyManageData, checkManageData } from './manage-data.ts'
import { applyPayment, checkPayment } from './payment.ts'
import { applySetOptions, checkSetOptions } from './set-options.ts'

const Inner = xdr.OperationResultTr

/** The outcome of an operation. If it failed, the caller drops its layer. */
export interface OperationOutcome {
  readonly ok: boolean
  readonly result: xdr.OperationResult
  readonly events: xdr.ContractEvent[]
}

/** Whether this ledger supports the operation. Contract calls are applied elsewhere. */
export function isSupported(body: xdr.OperationBody): boolean {
  switch (body.type) {
    case 'changeTrust':
      return body.changeTrustOp.line.type !== 'assetTypePoolShare'
    case 'createAccount':
    case 'payment':
    case 'setOptions':
    case 'manageData':
    case 'bumpSequence':
    case 'invokeHostFunction':
      return true
    default:
      return false
  }
}

/** The result that rejects a statically invalid operation (core's doCheckValid), or undefined. */
export function checkOperation({ body }: xdr.Operation, source: string): xdr.OperationResult | undefined {
  switch (body.type) {
    case 'createAccount':
      return wrap(Inner.createAccount, checkCreateAccount(body.createAccountOp, source))
    case 'payment':
      return wrap(Inner.payment, checkPayment(body.paymentOp))
    case 'changeTrust':
      return wrap(Inner.changeTrust, checkChangeTrust(body.changeTrustOp, source))
    case 'setOptions':
      return wrap(Inner.setOptions, checkSetOptions(body.setOptionsOp, source))
    case 'manageData':
      return wrap(Inner.manageData, checkManageData(body.manageDataOp))
    case 'bumpSequence':
      return wrap(Inner.bumpSequence, checkBumpSequence(body.bumpSequenceOp))
    default:
      return undefined
  }
}

/** Applies a classic operation that passed `checkOperation`. */
export function applyOperation({ body }: xdr.Operation, context: OperationContext): OperationOutcome {
  switch (body.type) {
    case 'createAccount':
      return finish(Inner.createAccount, applyCreateAccount(body.createAccountOp, context))
    case 'payment':
      return finish(Inner.payment, applyPayment(body.paymentOp, context))
    case 'changeTrust':
      return finish(Inner.changeTrust, applyChangeTrust(body.changeTrustOp, context))
    case 'setOptions':
      return finish(Inner.setOptions, applySetOptions(body.setOptionsOp, context))
    case 'manageData':
      return finish(Inner.manageData, applyManageData(body.manageDataOp, context))
    case 'bumpSequence':
      return finish(Inner.bumpSequence, applyBumpSequence(body.bumpSequenceOp, context))
    default:
      return refused(xdr.OperationResult.opNotSupported())
  }
}

export function refused(result: xdr.OperationResult): OperationOutcome {
  return { ok: false, result, events: [] }
}

/**
 * The results of a transaction that is rejected before anything ran: `faults`, and success for the other operations, as
 * core initializes its results.
 */
export function resultsWith(
  operations: readonly xdr.Operation[],
  faults: readonly (xdr.OperationResult | undefined)[],
) {
  return operations.map((operation, index) => faults[index] ?? untouched(operation))
}

function untouched({ body }: xdr.Operation): xdr.OperationResult {
  switch (body.type) {
    case 'createAccount':
      return inner(Inner.createAccount(xdr.CreateAccountResult.createAccountSuccess()))
    case 'payment':
      return inner(Inner.payment(xdr.PaymentResult.paymentSuccess()))
    case 'changeTrust':
      return inner(Inner.changeTrust(xdr.ChangeTrustResult.changeTrustSuccess()))
    case 'setOptions':
      return inner(Inner.setOptions(xdr.SetOptionsResult.setOptionsSuccess()))
    case 'manageData':
      return inner(Inner.manageData(xdr.ManageDataResult.manageDataSuccess()))
    case 'bumpSequence':
      return inner(Inner.bumpSequence(xdr.BumpSequenceResult.bumpSequenceSuccess()))
    default:
      return xdr.OperationResult.opNotSupported()
  }
}

const inner = (tr: xdr.OperationResultTr) => xdr.OperationResult.opInner(tr)

function wrap<Result>(arm: (result: Result) => xdr.OperationResultTr, refusal: Result | undefined) {
  return refusal && inner(arm(refusal))
}

function finish<Result extends { readonly type: string }>(
  arm: (result: Result) => xdr.OperationResultTr,
  { result, events = [] }: Applied<Result | 'too-many-subentries'>,
): OperationOutcome {
  if (result === 'too-many-subentries') return refused(xdr.OperationResult.opTooManySubentries())
  return { ok: result.type.endsWith('Success'), result: inner(arm(result)), events }
}
