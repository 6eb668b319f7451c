import { commit } from '#lib/wallet/commitment.ts'
import { encryptTransfer, encryptWithdrawal } from '#lib/wallet/encryption.ts'
import { encodePoint, H, multiply } from '#lib/wallet/grumpkin.ts'
import { importKeys } from '#lib/wallet/keys.ts'
import type { Statement } from '#lib/wallet/prover.ts'
import type { CircuitName } from './circuits.ts'

const TOKEN = 'C'.padEnd(56, 'A')
const ACCOUNT = 'G'.padEnd(56, 'A')

/**
 * One true statement for each circuit, of accounts that do not exist. No two public inputs are equal, so that a circuit
 * which takes them in another order refuses it.
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
  }
}

const pointOf = (scalar: bigint): Uint8Array => encodePoint(multiply(H, scalar))
