import { xdr } from '@stellar/stellar-sdk'
import { withSequence, writeAccount } from '../../state/account.ts'
import type { Applied, OperationContext } from './context.ts'

const Result = xdr.BumpSequenceResult

export function checkBumpSequence(op: xdr.BumpSequenceOp): xdr.BumpSequenceResult | undefined {
  return op.bumpTo < 0n ? Result.bumpSequenceBadSeq() : undefined
}

/** A target that isn't higher succeeds and leaves the number unchanged. It counts as a use of the number. */
export function applyBumpSequence(
  op: xdr.BumpSequenceOp,
  { state, ledger, account }: OperationContext,
): Applied<xdr.BumpSequenceResult> {
  const next = op.bumpTo > account.seqNum ? op.bumpTo : account.seqNum
  writeAccount(state, withSequence(account, next, ledger), ledger.sequence)
  return { result: Result.bumpSequenceSuccess() }
}
