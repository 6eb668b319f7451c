import { xdr } from '@stellar/stellar-sdk'
import { addSubentry, dropSubentry, writeAccount } from '../../state/account.ts'
import { dataKey, isSoundString, publicKey } from '../../state/ledger-key.ts'
import type { Applied, OperationContext } from './context.ts'

const Result = xdr.ManageDataResult

export function checkManageData(op: xdr.ManageDataOp): xdr.ManageDataResult | undefined {
  const valid = op.dataName.length >= 1 && op.dataName.length <= 64 && isSoundString(op.dataName)
  return valid ? undefined : Result.manageDataInvalidName()
}

export function applyManageData(
  { dataName, dataValue }: xdr.ManageDataOp,
  { state, ledger, source, account }: OperationContext,
): Applied<xdr.ManageDataResult | 'too-many-subentries'> {
  const key = dataKey(source, dataName)
  const present = state.get(key)
  if (!dataValue) {
    if (!present) return { result: Result.manageDataNameNotFound() }
    state.remove(key)
    writeAccount(state, dropSubentry(account), ledger.sequence)
    return { result: Result.manageDataSuccess() }
  }
  if (!present) {
    const grown = addSubentry(account)
    if ('refusal' in grown) {
      return { result: grown.refusal === 'too-many' ? 'too-many-subentries' : Result.manageDataLowReserve() }
    }
    writeAccount(state, grown.account, ledger.sequence)
  }
  const entry = new xdr.DataEntry({ accountId: publicKey(source), dataName, dataValue, ext: xdr.DataEntryExt.v0() })
  state.put({ key, data: xdr.LedgerEntryData.data(entry), lastModified: ledger.sequence })
  return { result: Result.manageDataSuccess() }
}
