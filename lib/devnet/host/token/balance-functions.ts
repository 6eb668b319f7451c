import { decodePoint, G, multiply } from '#lib/wallet/grumpkin.ts'
import { contractFunction } from '../contract-function.ts'
import { contractError } from '../host-error.ts'
import { address, i128, struct, symbol, VOID } from '../scval.ts'
import { addCommitment, NOTHING, readAccount, writeAccount } from './account.ts'
import { decodeCallData, eventData } from './call-data.ts'
import { auditorKey, checkProof, requireAddressAsField, underlyingAsset } from './proof.ts'

function checkAmount(amount: bigint): void {
  if (amount < 0n) throw contractError(3502, `negative amount: ${amount}`)
}

/**
 * Instructions of amount·G. 0 costs nothing: the result is the identity. The rest is a line through the released
 * contract's figures for 50 (6 bits) and 1,000 (10 bits) base units.
 */
function multiplicationCost(amount: bigint): number {
  return amount === 0n ? 0 : 11_800_000 + 300_000 * amount.toString(2).length
}

/** Transfers `amount` of the underlying asset into the token and adds it to the receiving commitment of `to`. */
export const deposit = contractFunction({
  parameters: { from: 'address', to: 'address', amount: 'i128' },
  returns: 'void',
  instructions: 1_310_000,
  run: (call, { from, to, amount }) => {
    call.requireAuth(from)
    checkAmount(amount)
    readAccount(call, to)
    call.invoke(underlyingAsset(call), 'transfer', [address(from), address(call.contract), i128(amount)])
    call.spend(multiplicationCost(amount))
    const recipient = readAccount(call, to)
    writeAccount(call, to, { ...recipient, receiving: addCommitment(recipient.receiving, multiply(G, amount)) })
    call.publish([symbol('deposit'), address(from), address(to)], struct({ amount: i128(amount) }))
    return VOID
  },
})

/** Instructions of adding two points, neither of them the identity. */
const ADDITION = 400_000

/** Adds the receiving commitment to the spendable one. */
export const merge = contractFunction({
  parameters: { account: 'address' },
  returns: 'void',
  instructions: 1_020_000,
  run: (call, { account }) => {
    call.requireAuth(account)
    const state = readAccount(call, account)
    if (![state.spendable, state.receiving].some(isIdentity)) call.spend(ADDITION)
    const spendable = addCommitment(state.spendable, decodePoint(state.receiving))
    writeAccount(call, account, { ...state, spendable, receiving: NOTHING })
    call.publish([symbol('merge'), address(account)], struct({}))
    return VOID
  },
})

const isIdentity = (point: Uint8Array): boolean => point.every((byte) => byte === 0)

/** Replaces the spendable commitment and pays out `amount` of the underlying asset. Errors of a transfer, and #3502. */
export const withdraw = contractFunction({
  parameters: { from: 'address', to: 'address', amount: 'i128', data: 'bytes' },
  returns: 'void',
  instructions: 4_400_000,
  run: (call, { from, to, amount, data }) => {
    call.requireAuth(from)
    const { payload, proof } = decodeCallData('withdraw', data)
    checkAmount(amount)
    const sender = readAccount(call, from)
    const { spendable, spendingKey } = sender
    const auditorSender = auditorKey(call, sender.auditorId)
    requireAddressAsField(call)
    const statement = { token: call.contract, spendable, spendingKey, amount, auditorSender, payload }
    checkProof(call, payload, { circuit: 'withdraw', ...statement }, proof)
    writeAccount(call, from, { ...sender, spendable: payload.c_spend_new ?? NOTHING })
    call.invoke(underlyingAsset(call), 'transfer', [address(call.contract), address(to), i128(amount)])
    call.publish([symbol('withdraw'), address(from), address(to)], eventData(payload, { amount: i128(amount) }))
    return VOID
  },
})
