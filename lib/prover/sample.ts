import { commit } from '#lib/wallet/commitment.ts'
import { encryptDelegatedTransfer, encryptDelegation } from '#lib/wallet/delegation.ts'
import { encryptTransfer, encryptWithdrawal } from '#lib/wallet/encryption.ts'
import { encodeField, encodePoint, H, multiply } from '#lib/wallet/grumpkin.ts'
import { deriveDelegationKey, importKeys } from '#lib/wallet/keys.ts'
import type { Statement } from '#lib/wallet/prover.ts'
import type { CircuitName } from './circuits.ts'

const TOKEN = 'C'.padEnd(56, 'A')
const ACCOUNT = 'G'.padEnd(56, 'A')

/**
 * One true statement for each circuit, of accounts that do not exist. No two public inputs are equal, except for the two
 * that a delegation shares, so a circuit that takes them in another order rejects the statement.
 */
export function sampleStatements(): Record<CircuitName, Statement> {
  const keys = importKeys(11n, TOKEN)
  const opening = { value: 1_000n, blinding: 12n }
  const [viewingKey, auditorRecipient, auditorSender] = [pointOf(13n), pointOf(14n), pointOf(15n)]
  const spending = { keys, opening, amount: 300n, salt: 16n, auditorSender }
  const transfer = encryptTransfer({ ...spending, viewingKey, auditorRecipient })
  const withdrawal = encryptWithdrawal(spending)
  const sender = {
    token: TOKEN,
    spendable: encodePoint(commit(opening)),
    spendingKey: keys.spendingKey,
    auditorSender,
  }
  const spender = importKeys(17n, TOKEN)
  const delegation = encryptDelegation({
    ...spending,
    spender: ACCOUNT,
    spenderKey: spender.spendingKey,
    allowanceSalt: 18n,
  })
  const delegated = encryptDelegatedTransfer({
    keys: spender,
    delegationKey: deriveDelegationKey(keys.vk, ACCOUNT),
    allowance: delegation.allowance,
    allowanceSalt: 18n,
    salt: 19n,
    amount: 100n,
    viewingKey,
    auditorRecipient,
    auditorSender,
  })
  return {
    register: {
      circuit: 'register',
      token: TOKEN,
      account: ACCOUNT,
      y: keys.spendingKey,
      pvk: keys.viewingKey,
      witness: { sk: keys.sk, vk: keys.vk },
    },
    transfer: {
      circuit: 'transfer',
      ...sender,
      viewingKey,
      auditorRecipient,
      payload: transfer.payload,
      witness: { ...transfer.witness, vTransfer: spending.amount },
    },
    withdraw: {
      circuit: 'withdraw',
      ...sender,
      amount: spending.amount,
      payload: withdrawal.payload,
      witness: withdrawal.witness,
    },
    set_spender: {
      circuit: 'set_spender',
      ...sender,
      spender: ACCOUNT,
      spenderKey: spender.spendingKey,
      payload: delegation.payload,
      witness: { ...delegation.witness, vA: spending.amount },
    },
    spender_transfer: {
      circuit: 'spender_transfer',
      allowance: encodePoint(commit(delegation.allowance)),
      allowanceSalt: encodeField(18n),
      spenderKey: spender.spendingKey,
      viewingKey,
      auditorRecipient,
      auditorSender,
      payload: delegated.payload,
      witness: delegated.witness,
    },
  }
}

const pointOf = (scalar: bigint): Uint8Array => encodePoint(multiply(H, scalar))
