import { xdr } from '@stellar/stellar-sdk'
import { withSequence, writeAccount } from '../../state/account.ts'
import type { Applied, OperationContext } from './context.ts'

const Result = xdr.BumpSequenceResult

export function checkBumpSequence(op: xdr.BumpSequenceOp): xdr.BumpSequenceResult | undefined {
  return op.bumpTo < 0n ? Result.bumpSequenceBadSeq() : undefined
}

/** Never backwards: a lower target changes nothing and is no error. */
export function applyBumpSequence(
  op: xdr.BumpSequenceOp,
  { state, ledger, account }: OperationContext,
): Applied<xdr.BumpSequenceResult> {
  if (op.bumpTo > account.seqNum) writeAccount(state, withSequence(account, op.bumpTo, ledger), ledger.sequence)
  return { result: Result.bumpSequenceSuccess() }
}
