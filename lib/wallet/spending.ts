import { equalBytes } from '@noble/curves/utils.js'
import { xdr } from '@stellar/stellar-sdk'
import type { DelegationEntry } from '#lib/stellar/confidential-token.ts'
import type { ConfidentialAccount } from './account.ts'
import { encodeCallData } from './call-data.ts'
import { commit, type Opening, opens } from './commitment.ts'
import { encryptDelegatedTransfer, encryptDelegation, openDelegation } from './delegation.ts'
import type { Deployment } from './deployment.ts'
import { encryptTransfer, encryptWithdrawal, type Payload } from './encryption.ts'
import { decodeField, encodeField, encodePoint } from './grumpkin.ts'
import { scAddress, scAmount } from './invocation.ts'
import { type AnyHolder, drawSalt } from './keys.ts'
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

/** Encrypts and proves one transfer under a new salt, without reading the ledger. Throws like `encryptTransfer`. */
export async function proveTransfer(
  deployment: Deployment,
  holder: AnyHolder,
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

/**
 * Encrypts and proves a delegation of part of the balance to a spender, under new salts. The contract accepts any
 * `liveUntilLedger`, even a past one. Throws the same errors as `encryptTransfer`.
 */
export async function proveDelegation(
  deployment: Deployment,
  holder: AnyHolder,
  start: Start,
  delegation: {
    spender: string
    spenderKey: Uint8Array
    amount: bigint
    liveUntilLedger: number
    auditorSender: Uint8Array
  },
): Promise<Spending> {
  const { keys, address } = holder
  const { spender, spenderKey, amount, liveUntilLedger, auditorSender } = delegation
  const random = deployment.random ?? systemRandom
  const [salt, allowanceSalt] = [drawSalt(random), drawSalt(random)]
  const { payload, next, witness } = encryptDelegation({
    ...delegation,
    keys,
    opening: start.opening,
    salt,
    allowanceSalt,
  })
  const data = await proveCall(deployment, payload, {
    circuit: 'set_spender',
    token: deployment.token,
    spendable: start.spendable,
    spendingKey: keys.spendingKey,
    spender,
    spenderKey,
    auditorSender,
    payload,
    witness: { ...witness, vA: amount },
  })
  const args = [scAddress(address), scAddress(spender), xdr.ScVal.scvU32(liveUntilLedger), data]
  return { name: 'set_spender', args, next }
}

/** An allowance that its spender has opened, from which a payment starts. */
export interface Allowance {
  /** G… or C…, the account that escrowed it */
  owner: string
  /** the delegation's viewing key */
  delegationKey: bigint
  opening: Opening
  salt: bigint
}

/** The allowance of a delegation's entry, from its spender's own keys. Undefined for another spender's entry. */
export function openAllowance(spender: AnyHolder, owner: string, entry: DelegationEntry): Allowance | undefined {
  const opened = openDelegation(spender.keys, spender.address, entry)
  if (!opened) return undefined
  const { delegationKey, allowance } = opened
  return { owner, delegationKey, opening: allowance, salt: decodeField(entry.allowance_salt) }
}

/**
 * Encrypts and proves one payment from an allowance, under a new salt, without reading the ledger. `rest` is the allowance
 * after the call. Throws like `encryptDelegatedTransfer`.
 * @param holder the spender
 */
export async function proveDelegatedTransfer(
  deployment: Deployment,
  holder: AnyHolder,
  allowance: Allowance,
  transfer: {
    to: string
    amount: bigint
    viewingKey: Uint8Array
    auditorRecipient: Uint8Array
    auditorSender: Uint8Array
  },
): Promise<Spending & { rest: Allowance }> {
  const { keys, address } = holder
  const { to, amount, viewingKey, auditorRecipient, auditorSender } = transfer
  const { owner, delegationKey, opening, salt: allowanceSalt } = allowance
  const salt = drawSalt(deployment.random ?? systemRandom)
  const { payload, next, witness } = encryptDelegatedTransfer({
    keys,
    delegationKey,
    allowance: opening,
    allowanceSalt,
    salt,
    amount,
    viewingKey,
    auditorRecipient,
    auditorSender,
  })
  const data = await proveCall(deployment, payload, {
    circuit: 'spender_transfer',
    allowance: encodePoint(commit(opening)),
    allowanceSalt: encodeField(allowanceSalt),
    spenderKey: keys.spendingKey,
    viewingKey,
    auditorRecipient,
    auditorSender,
    payload,
    witness,
  })
  const args = [scAddress(address), scAddress(owner), scAddress(to), data]
  return { name: 'confidential_transfer_from', args, next, rest: { ...allowance, opening: next, salt } }
}

/** Encrypts and proves one withdrawal of a public amount, like `proveTransfer`. */
export async function proveWithdrawal(
  deployment: Deployment,
  holder: AnyHolder,
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
  deployment.signal?.throwIfAborted()
  const proof = await deployment.prover.prove(statement)
  deployment.signal?.throwIfAborted()
  if (proof.length !== PROOF_BYTES) throw new Error(`the prover gave ${proof.length} bytes in place of ${PROOF_BYTES}`)
  return xdr.ScVal.scvBytes(encodeCallData(payload, proof))
}

/**
 * The start of a payment from the account's current entry.
 * @throws WalletError `other-keys` if the account has other keys, `balance-changed` if the opening does not match
 */
export function startFrom(account: ConfidentialAccount, holder: AnyHolder, opening: Opening): Start {
  if (!equalBytes(account.spendingKey, holder.keys.spendingKey)) {
    throw new WalletError('other-keys', 'the account is registered with other confidential keys')
  }
  if (!opens(opening, account.spendable)) {
    const reason = 'the spendable balance on the ledger is not that of the opening: synchronise and try again'
    throw new WalletError('balance-changed', reason)
  }
  return { spendable: account.spendable, opening }
}

const systemRandom = (size: number): Uint8Array => crypto.getRandomValues(new Uint8Array(size))
