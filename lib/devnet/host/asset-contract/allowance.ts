import { NETWORK_LIMITS } from '../../transaction/fees.ts'
import type { Call } from '../contract-function.ts'
import { contractData, contractDataKey } from '../entry-key.ts'
import { contractError } from '../host-error.ts'
import { variant } from '../instance.ts'
import { address, fieldsOf, i128, i128Of, struct, u32, u32Of } from '../scval.ts'

interface Allowance {
  readonly from: string
  readonly spender: string
}

const keyOf = (call: Call, { from, spender }: Allowance) => {
  const key = variant('Allowance', struct({ from: address(from), spender: address(spender) }))
  return contractDataKey(call.contract, key, 'temporary')
}

/** Base units that `spender` may still take from `from`; 0 after the allowance's last ledger. */
export function readAllowance(call: Call, allowance: Allowance): { amount: bigint; liveUntil: number } {
  const data = call.storage.get(keyOf(call, allowance))?.data
  const fields = data?.type === 'contractData' ? fieldsOf(data.contractData.val) : undefined
  const liveUntil = u32Of(fields?.get('live_until_ledger')) ?? 0
  const amount = liveUntil < call.ledger.sequence ? 0n : (i128Of(fields?.get('amount')) ?? 0n)
  return { amount, liveUntil }
}

/** Error(Contract, #9) for an allowance that has already ended, or that lasts longer than an entry can. */
export function writeAllowance(call: Call, allowance: Allowance, amount: bigint, liveUntil: number): void {
  if (amount > 0n && liveUntil < call.ledger.sequence) {
    throw contractError(9, 'live_until must be >= ledger sequence', u32(liveUntil), u32(call.ledger.sequence))
  }
  const longest = call.ledger.sequence + NETWORK_LIMITS.maximumTtl - 1
  if (amount > 0n && liveUntil > longest) {
    throw contractError(9, 'live_until is greater than max ledger', u32(liveUntil), u32(longest))
  }
  const key = keyOf(call, allowance)
  if (amount === 0n && !call.storage.get(key)) return
  const val = struct({ amount: i128(amount), live_until_ledger: u32(liveUntil) })
  call.storage.put(key, contractData(key, val), amount > 0n ? liveUntil : 0)
}

export function spendAllowance(call: Call, allowance: Allowance, amount: bigint): void {
  const { amount: allowed, liveUntil } = readAllowance(call, allowance)
  if (allowed < amount) throw contractError(9, 'not enough allowance to spend', i128(allowed), i128(amount))
  if (amount > 0n) writeAllowance(call, allowance, allowed - amount, liveUntil)
}
