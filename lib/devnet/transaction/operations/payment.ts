import { xdr } from '@stellar/stellar-sdk'
import { baseAccount } from '#lib/stellar/node/envelope.ts'
import { availableBalance, INT64_MAX, readAccount, withBalance, writeAccount } from '../../state/account.ts'
import { isSoundAsset, issuerOf, trustlineAsset } from '../../state/ledger-key.ts'
import { isAuthorized, readTrustline, withAmount, writeTrustline } from '../../state/trustline.ts'
import { movementEvent } from '../asset-events.ts'
import type { Applied, OperationContext } from './context.ts'

const Result = xdr.PaymentResult

export function checkPayment(op: xdr.PaymentOp): xdr.PaymentResult | undefined {
  return op.amount > 0n && isSoundAsset(op.asset) ? undefined : Result.paymentMalformed()
}

/** The destination is credited before the source is charged: core checks in this order. */
export function applyPayment(op: xdr.PaymentOp, context: OperationContext): Applied<xdr.PaymentResult> {
  const { ledger, source, memo } = context
  const { asset, amount, destination } = op
  const refusal = asset.type === 'assetTypeNative' ? payNative(op, context) : payCredit(op, context)
  if (refusal) return { result: refusal }
  const move = { passphrase: ledger.passphrase, asset, from: source, to: destination, amount, memo }
  return { result: Result.paymentSuccess(), events: [movementEvent(move)] }
}

function payNative(op: xdr.PaymentOp, { state, ledger, source, account }: OperationContext) {
  const destination = baseAccount(op.destination)
  if (destination === source) return undefined
  const receiver = readAccount(state, destination)
  if (!receiver) return Result.paymentNoDestination()
  if (receiver.balance + op.amount > INT64_MAX) return Result.paymentLineFull()
  if (op.amount > availableBalance(account)) return Result.paymentUnderfunded()
  writeAccount(state, withBalance(receiver, receiver.balance + op.amount), ledger.sequence)
  writeAccount(state, withBalance(account, account.balance - op.amount), ledger.sequence)
  return undefined
}

/** The issuer has no trust line: it creates the units that it sends, and burns the units that it receives. */
function payCredit(op: xdr.PaymentOp, { state, ledger, source }: OperationContext) {
  const asset = trustlineAsset(op.asset)
  const issuer = issuerOf(op.asset)
  const destination = baseAccount(op.destination)
  if (destination !== issuer) {
    if (!readAccount(state, destination)) return Result.paymentNoDestination()
    const line = readTrustline(state, destination, asset)
    if (!line) return Result.paymentNoTrust()
    if (!isAuthorized(line)) return Result.paymentNotAuthorized()
    const credited = withAmount(line, op.amount)
    if (!credited) return Result.paymentLineFull()
    writeTrustline(state, credited, ledger.sequence)
  }
  if (source === issuer) return undefined
  const line = readTrustline(state, source, asset)
  if (!line) return Result.paymentSrcNoTrust()
  if (!isAuthorized(line)) return Result.paymentSrcNotAuthorized()
  const charged = withAmount(line, -op.amount)
  if (!charged) return Result.paymentUnderfunded()
  writeTrustline(state, charged, ledger.sequence)
  return undefined
}
