import { decodePoint } from '#lib/wallet/grumpkin.ts'
import { contractFunction } from '../contract-function.ts'
import { contractError } from '../host-error.ts'
import { address, bool, bytes, struct, symbol, u32, VOID } from '../scval.ts'
import { addCommitment, NOTHING, readAccount, writeAccount } from './account.ts'
import { decodeCallData, eventData } from './call-data.ts'
import {
  delegationKey,
  encodeDelegation,
  findDelegation,
  hasDelegation,
  readDelegation,
  writeDelegation,
} from './delegation.ts'
import { auditorKey, checkProof, requireAddressAsField } from './proof.ts'

/** Instructions of a read-only call. */
const READ = 600_000
/** Instructions of a call with a proof, without the verification: the same as a transfer's. */
const PROVED = 6_100_000

/**
 * Moves an allowance out of the owner's spendable balance into an escrow for one spender. Errors #3507, #3501, #3301,
 * #3514, #3506, #3503. An expiry in the past is accepted.
 */
export const setSpender = contractFunction({
  parameters: { account: 'address', spender: 'address', live_until_ledger: 'u32', data: 'bytes' },
  returns: 'void',
  instructions: PROVED,
  run: (call, { account, spender, live_until_ledger, data }) => {
    call.requireAuth(account)
    const { payload, proof } = decodeCallData('set_spender', data)
    const owner = readAccount(call, account)
    const spenderKey = readAccount(call, spender).spendingKey
    const auditorSender = auditorKey(call, owner.auditorId)
    requireAddressAsField(call)
    const { spendable, spendingKey } = owner
    const statement = { token: call.contract, spendable, spendingKey, spender, spenderKey, auditorSender, payload }
    checkProof(call, payload, { circuit: 'set_spender', ...statement }, proof)
    writeAccount(call, account, { ...owner, spendable: payload.c_spend_new ?? NOTHING })
    if (hasDelegation(call, account, spender)) {
      throw contractError(3503, `there is already a delegation of ${account} to ${spender}`)
    }
    const { c_a = NOTHING, a_tilde = NOTHING, sigma_a = NOTHING, escrowed_dvk = NOTHING } = payload
    writeDelegation(call, account, spender, {
      commitment: c_a,
      ciphertext: a_tilde,
      salt: sigma_a,
      escrow: escrowed_dvk,
      liveUntil: live_until_ledger,
    })
    const topics = [symbol('set_spender'), address(account), address(spender)]
    call.publish(topics, eventData(payload, { live_until_ledger: u32(live_until_ledger) }))
    return VOID
  },
})

/**
 * Pays from an allowance. Only its spender authorizes and proves the payment. Errors #3507, #3504, #3505, #3501, #3301,
 * #3514, #3506. The auditor of the allowance's owner can read the payment; the spender's auditor cannot.
 */
export const confidentialTransferFrom = contractFunction({
  parameters: { spender: 'address', from: 'address', to: 'address', data: 'bytes' },
  returns: 'void',
  instructions: PROVED,
  run: (call, { spender, from, to, data }) => {
    call.requireAuth(spender)
    const { payload, proof } = decodeCallData('spender_transfer', data)
    const delegation = readDelegation(call, from, spender)
    if (call.ledger.sequence > delegation.liveUntil) {
      throw contractError(3505, `the delegation ended with ledger ${delegation.liveUntil}`)
    }
    const owner = readAccount(call, from)
    const { spendingKey: spenderKey } = readAccount(call, spender)
    const { auditorId, viewingKey } = readAccount(call, to)
    const auditorRecipient = auditorKey(call, auditorId)
    const auditorSender = auditorKey(call, owner.auditorId)
    const { commitment: allowance, salt: allowanceSalt } = delegation
    const keys = { spenderKey, viewingKey, auditorRecipient, auditorSender }
    checkProof(call, payload, { circuit: 'spender_transfer', allowance, allowanceSalt, ...keys, payload }, proof)
    const { c_a_new = NOTHING, a_tilde_new = NOTHING, sigma_a_new = NOTHING, c_transfer = NOTHING } = payload
    writeDelegation(call, from, spender, {
      ...delegation,
      commitment: c_a_new,
      ciphertext: a_tilde_new,
      salt: sigma_a_new,
    })
    const recipient = readAccount(call, to)
    writeAccount(call, to, { ...recipient, receiving: addCommitment(recipient.receiving, decodePoint(c_transfer)) })
    const topics = [symbol('spender_transfer'), address(spender), address(from), address(to)]
    call.publish(topics, eventData(payload))
    return VOID
  },
})

/** Adds the rest of an allowance to the owner's spendable balance, even after its expiry. Errors #3501, #3504. */
export const revokeSpender = contractFunction({
  parameters: { account: 'address', spender: 'address' },
  returns: 'void',
  instructions: 1_470_000,
  run: (call, { account, spender }) => {
    call.requireAuth(account)
    const owner = readAccount(call, account)
    const { commitment, ciphertext, salt } = readDelegation(call, account, spender)
    writeAccount(call, account, { ...owner, spendable: addCommitment(owner.spendable, decodePoint(commitment)) })
    call.storage.remove(delegationKey(call.contract, account, spender))
    const data = struct({ a_tilde: bytes(ciphertext), allowance_salt: bytes(salt) })
    call.publish([symbol('revoke_spender'), address(account), address(spender)], data)
    return VOID
  },
})

/** Whether a delegation exists and has not expired. */
export const isSpender = contractFunction({
  parameters: { account: 'address', spender: 'address' },
  returns: 'bool',
  instructions: READ,
  run: (call, { account, spender }) => {
    const delegation = findDelegation(call, account, spender)
    return bool(delegation !== undefined && call.ledger.sequence <= delegation.liveUntil)
  },
})

/** Error #3504 if there is none. */
export const getSpenderDelegation = contractFunction({
  parameters: { account: 'address', spender: 'address' },
  returns: 'delegation',
  instructions: READ,
  run: (call, { account, spender }) => encodeDelegation(readDelegation(call, account, spender)),
})
