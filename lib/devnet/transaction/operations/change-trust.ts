import { xdr } from '@stellar/stellar-sdk'
import { addSubentry, dropSubentry, readAccount, writeAccount } from '../../state/account.ts'
import { isSoundAsset, issuerOf, publicKey, trustlineAsset, trustlineKey } from '../../state/ledger-key.ts'
import { makeTrustline, readTrustline, writeTrustline } from '../../state/trustline.ts'
import type { Applied, OperationContext } from './context.ts'

const Result = xdr.ChangeTrustResult
type Outcome = Applied<xdr.ChangeTrustResult | 'too-many-subentries'>

export function checkChangeTrust(op: xdr.ChangeTrustOp, source: string): xdr.ChangeTrustResult | undefined {
  const issuer = issuerOf(op.line)
  const valid = issuer !== null && issuer !== source && op.limit >= 0n && isSoundAsset(op.line)
  return valid ? undefined : Result.changeTrustMalformed()
}

export function applyChangeTrust(op: xdr.ChangeTrustOp, context: OperationContext): Outcome {
  const line = readTrustline(context.state, context.source, trustlineAsset(op.line))
  return line ? changeLine(op, line, context) : makeLine(op, context)
}

function changeLine(op: xdr.ChangeTrustOp, line: xdr.TrustLineEntry, context: OperationContext): Outcome {
  const { state, ledger, source, account } = context
  if (op.limit < line.balance) return { result: Result.changeTrustInvalidLimit() }
  if (op.limit === 0n) {
    state.remove(trustlineKey(source, line.asset))
    writeAccount(state, dropSubentry(account), ledger.sequence)
    return { result: Result.changeTrustSuccess() }
  }
  if (!issuerAccount(op, context)) return { result: Result.changeTrustNoIssuer() }
  writeTrustline(state, new xdr.TrustLineEntry({ ...line, limit: op.limit }), ledger.sequence)
  return { result: Result.changeTrustSuccess() }
}

function makeLine(op: xdr.ChangeTrustOp, context: OperationContext): Outcome {
  const { state, ledger, source, account } = context
  if (op.limit === 0n) return { result: Result.changeTrustInvalidLimit() }
  const issuer = issuerAccount(op, context)
  if (!issuer) return { result: Result.changeTrustNoIssuer() }
  const grown = addSubentry(account)
  if ('refusal' in grown) {
    return { result: grown.refusal === 'too-many' ? 'too-many-subentries' : Result.changeTrustLowReserve() }
  }
  writeAccount(state, grown.account, ledger.sequence)
  const line = makeTrustline(publicKey(source), trustlineAsset(op.line), op.limit, issuer.flags)
  writeTrustline(state, line, ledger.sequence)
  return { result: Result.changeTrustSuccess() }
}

function issuerAccount(op: xdr.ChangeTrustOp, { state }: OperationContext): xdr.AccountEntry | undefined {
  const issuer = issuerOf(op.line)
  return issuer === null ? undefined : readAccount(state, issuer)
}
