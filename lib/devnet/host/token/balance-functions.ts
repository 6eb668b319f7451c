import { decodePoint, G, multiply } from '#lib/wallet/grumpkin.ts'
import { contractFunction } from '../contract-function.ts'
import { contractError } from '../host-error.ts'
import { address, i128, struct, symbol, VOID } from '../scval.ts'
import { addCommitment, NOTHING, readAccount, writeAccount } from './account.ts'
import { decodeCallData, disclosed } from './call-data.ts'
import { auditorKey, checkProof, underlyingAsset } from './proof.ts'

function checkAmount(amount: bigint): void {
  if (amount < 0n) throw contractError(3502, `negative amount: ${amount}`)
}

/** Moves `amount` of the underlying asset into the token, and adds it to what `to` receives. `from` needs no account. */
export const deposit = contractFunction({
  parameters: { from: 'address', to: 'address', amount: 'i128' },
  returns: 'void',
  instructions: 6_000_000,
  run: (call, { from, to, amount }) => {
    call.requireAuth(from)
    checkAmount(amount)
    const recipient = readAccount(call, to)
    call.invoke(underlyingAsset(call), 'transfer', [address(from), address(call.contract), i128(amount)])
    writeAccount(call, to, { ...recipient, receiving: addCommitment(recipient.receiving, multiply(G, amount)) })
    call.publish([symbol('deposit'), address(from), address(to)], struct({ amount: i128(amount) }))
    return VOID
  },
})

/** Adds the receiving commitment to the spendable one. */
export const merge = contractFunction({
  parameters: { account: 'address' },
  returns: 'void',
  instructions: 3_500_000,
  run: (call, { account }) => {
    call.requireAuth(account)
    const state = readAccount(call, account)
    const spendable = addCommitment(state.spendable, decodePoint(state.receiving))
    writeAccount(call, account, { ...state, spendable, receiving: NOTHING })
    call.publish([symbol('merge'), address(account)], struct({}))
    return VOID
  },
})

/** Replaces the spendable commitment and pays out `amount` of the underlying asset. Errors of a transfer, and #3502. */
export const withdraw = contractFunction({
  parameters: { from: 'address', to: 'address', amount: 'i128', data: 'bytes' },
  returns: 'void',
  instructions: 31_000_000,
  run: (call, { from, to, amount, data }) => {
    call.requireAuth(from)
    checkAmount(amount)
    const sender = readAccount(call, from)
    const { payload, proof } = decodeCallData('withdraw', data)
    const { spendable, spendingKey } = sender
    const auditorSender = auditorKey(call, sender.auditorId)
    const statement = { token: call.contract, spendable, spendingKey, amount, auditorSender, payload }
    checkProof(call, { circuit: 'withdraw', ...statement }, proof)
    writeAccount(call, from, { ...sender, spendable: payload.c_spend_new ?? NOTHING })
    call.invoke(underlyingAsset(call), 'transfer', [address(call.contract), address(to), i128(amount)])
    call.publish([symbol('withdraw'), address(from), address(to)], disclosed(payload, { amount: i128(amount) }))
    return VOID
  },
})
