import { Address, Operation, xdr } from '@stellar/stellar-sdk'
import type { ConfidentialAccount } from './account.ts'
import { encodeCallData } from './call-data.ts'
import { type Opening, opens } from './commitment.ts'
import type { Deployment, TokenOnNetwork } from './deployment.ts'
import { encryptTransfer, encryptWithdrawal, type Payload } from './encryption.ts'
import { drawSalt, type Holder } from './keys.ts'
import { PROOF_BYTES, type Statement } from './prover.ts'
import { WalletError } from './wallet-error.ts'

/** A proved payment from a balance, ready for a transaction. */
export interface Spending {
  name: string
  args: xdr.ScVal[]
  /** Opening of the sender's balance after the call. */
  next: Opening
}

/** The balance that a payment starts from: its commitment when the call is applied, and its opening. */
export interface Start {
  spendable: Uint8Array
  opening: Opening
}

/** Encrypts and proves one transfer under a new salt, without reading the ledger. Throws as `encryptTransfer`. */
export async function proveTransfer(
  deployment: Deployment,
  holder: Holder,
  start: Start,
  transfer: {
    to: string
    amount: bigint
    viewingKey: Uint8Array
    auditorRecipient: Uint8Array
    auditorSender: Uint8Array
  },
): Promise<Spending> {
  const { keys, address } = holder
  const { to, viewingKey, auditorRecipient, auditorSender, amount } = transfer
  const salt = drawSalt(deployment.random ?? systemRandom)
  const { payload, next, witness } = encryptTransfer({ ...transfer, keys, opening: start.opening, salt })
  const data = await proveCall(deployment, payload, {
    circuit: 'transfer',
    token: deployment.token,
    spendable: start.spendable,
    spendingKey: keys.spendingKey,
    viewingKey,
    auditorRecipient,
    auditorSender,
    payload,
    witness: { ...witness, vTransfer: amount },
  })
  const args = [scAddress(address), scAddress(to), data]
  return { name: 'confidential_transfer', args, next }
}

/** Encrypts and proves one withdrawal of a public amount, like `proveTransfer`. */
export async function proveWithdrawal(
  deployment: Deployment,
  holder: Holder,
  start: Start,
  withdrawal: { to: string; amount: bigint; auditorSender: Uint8Array },
): Promise<Spending> {
  const { keys, address } = holder
  const { to, amount, auditorSender } = withdrawal
  const salt = drawSalt(deployment.random ?? systemRandom)
  const { payload, next, witness } = encryptWithdrawal({ ...withdrawal, keys, opening: start.opening, salt })
  const data = await proveCall(deployment, payload, {
    circuit: 'withdraw',
    token: deployment.token,
    spendable: start.spendable,
    spendingKey: keys.spendingKey,
    amount,
    auditorSender,
    payload,
    witness,
  })
  const args = [scAddress(address), scAddress(to), scAmount(amount), data]
  return { name: 'withdraw', args, next }
}

/** Proves the statement and encodes the `data` argument. Throws if the prover returns no UltraHonk proof. */
export async function proveCall(deployment: Deployment, payload: Payload, statement: Statement): Promise<xdr.ScVal> {
  const proof = await deployment.prover.prove(statement)
  if (proof.length !== PROOF_BYTES) throw new Error(`the prover gave ${proof.length} bytes in place of ${PROOF_BYTES}`)
  return xdr.ScVal.scvBytes(encodeCallData(payload, proof))
}

/**
 * The start of a payment from the account's present entry.
 * @throws WalletError `other-keys` if the account has other keys, `balance-changed` if the opening does not match
 */
export function startFrom(account: ConfidentialAccount, holder: Holder, opening: Opening): Start {
  if (Buffer.compare(account.spendingKey, holder.keys.spendingKey) !== 0) {
    throw new WalletError('other-keys', 'the account is registered with other confidential keys')
  }
  if (!opens(opening, account.spendable)) {
    const reason = 'the spendable balance on the ledger is not that of the opening: synchronise and try again'
    throw new WalletError('balance-changed', reason)
  }
  return { spendable: account.spendable, opening }
}

export function invoke(deployment: TokenOnNetwork, name: string, args: xdr.ScVal[]): xdr.Operation {
  return Operation.invokeContractFunction({ contract: deployment.token, function: name, args })
}

export const scAddress = (strkey: string): xdr.ScVal => new Address(strkey).toScVal()

/** A public amount as i128. Callers check that it is not negative. */
export const scAmount = (amount: bigint): xdr.ScVal =>
  xdr.ScVal.scvI128(new xdr.Int128Parts({ hi: amount >> 64n, lo: amount & 0xffff_ffff_ffff_ffffn }))

const systemRandom = (size: number): Uint8Array => crypto.getRandomValues(new Uint8Array(size))
