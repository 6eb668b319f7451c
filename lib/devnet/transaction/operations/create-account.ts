import { xdr } from '@stellar/stellar-sdk'
import {
  availableBalance,
  BASE_RESERVE,
  makeAccount,
  readAccount,
  withBalance,
  writeAccount,
} from '../../state/account.ts'
import { accountId } from '../../state/ledger-key.ts'
import { movementEvent } from '../asset-events.ts'
import type { Applied, OperationContext } from './context.ts'

const Result = xdr.CreateAccountResult

export function checkCreateAccount(op: xdr.CreateAccountOp, source: string): xdr.CreateAccountResult | undefined {
  const valid = op.startingBalance >= 0n && accountId(op.destination) !== source
  return valid ? undefined : Result.createAccountMalformed()
}

export function applyCreateAccount(
  op: xdr.CreateAccountOp,
  context: OperationContext,
): Applied<xdr.CreateAccountResult> {
  const { state, ledger, account, source, memo } = context
  const destination = accountId(op.destination)
  const amount = op.startingBalance
  if (readAccount(state, destination)) return { result: Result.createAccountAlreadyExist() }
  if (amount < 2n * BASE_RESERVE) return { result: Result.createAccountLowReserve() }
  if (availableBalance(account) < amount) return { result: Result.createAccountUnderfunded() }
  writeAccount(state, withBalance(account, account.balance - amount), ledger.sequence)
  writeAccount(state, makeAccount(destination, amount, ledger.sequence), ledger.sequence)
  const to = xdr.MuxedAccount.keyTypeEd25519(op.destination.ed25519)
  const asset = xdr.Asset.assetTypeNative()
  const event = movementEvent({ passphrase: ledger.passphrase, asset, from: source, to, amount, memo })
  return { result: Result.createAccountSuccess(), events: [event] }
}
