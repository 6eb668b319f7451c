import { type Call, type ContractFunction, contractFunction } from '../contract-function.ts'
import { contractError } from '../host-error.ts'
import { i128, type MuxedAddress, u32, VOID, vec } from '../scval.ts'
import { spendAllowance, writeAllowance } from './allowance.ts'
import { credit, debit } from './balance.ts'
import { publish, publishTransfer } from './events.ts'
import { assetOf, checkHolder, touchInstance } from './metadata.ts'

/** As the network meters a transfer of XLM by its source. */
const INSTRUCTIONS = 186_705

export function checkAmount(amount: bigint): void {
  if (amount < 0n) throw contractError(8, 'negative amount is not allowed', i128(amount))
}

function move(call: Call, from: string, to: MuxedAddress, amount: bigint): void {
  const asset = assetOf(call)
  debit(call, asset, from, amount)
  credit(call, asset, to.address, amount)
  publishTransfer(call, asset, from, to, amount)
}

function burn(call: Call, from: string, amount: bigint): void {
  const asset = assetOf(call)
  debit(call, asset, from, amount)
  publish(call, asset, 'burn', [from], i128(amount))
}

export const transferFunctions: Record<string, ContractFunction> = {
  transfer: contractFunction({
    parameters: { from: 'address', to: 'muxed', amount: 'i128' },
    returns: 'void',
    instructions: INSTRUCTIONS,
    run: (call, { from, to, amount }) => {
      checkAmount(amount)
      call.requireAuth(from)
      touchInstance(call)
      move(call, from, to, amount)
      return VOID
    },
  }),
  transfer_from: contractFunction({
    parameters: { spender: 'address', from: 'address', to: 'address', amount: 'i128' },
    returns: 'void',
    instructions: INSTRUCTIONS,
    run: (call, { spender, from, to, amount }) => {
      checkAmount(amount)
      call.requireAuth(spender)
      touchInstance(call)
      spendAllowance(call, { from, spender }, amount)
      move(call, from, { address: to, id: undefined }, amount)
      return VOID
    },
  }),
  approve: contractFunction({
    parameters: { from: 'address', spender: 'address', amount: 'i128', live_until_ledger: 'u32' },
    returns: 'void',
    instructions: INSTRUCTIONS,
    run: (call, { from, spender, amount, live_until_ledger }) => {
      checkAmount(amount)
      call.requireAuth(from)
      touchInstance(call)
      writeAllowance(call, { from, spender }, amount, live_until_ledger)
      publish(call, assetOf(call), 'approve', [from, spender], vec(i128(amount), u32(live_until_ledger)))
      return VOID
    },
  }),
  burn: contractFunction({
    parameters: { from: 'address', amount: 'i128' },
    returns: 'void',
    instructions: INSTRUCTIONS,
    run: (call, { from, amount }) => {
      checkAmount(amount)
      checkHolder(assetOf(call), from)
      call.requireAuth(from)
      touchInstance(call)
      burn(call, from, amount)
      return VOID
    },
  }),
  burn_from: contractFunction({
    parameters: { spender: 'address', from: 'address', amount: 'i128' },
    returns: 'void',
    instructions: INSTRUCTIONS,
    run: (call, { spender, from, amount }) => {
      checkAmount(amount)
      checkHolder(assetOf(call), from)
      call.requireAuth(spender)
      touchInstance(call)
      spendAllowance(call, { from, spender }, amount)
      burn(call, from, amount)
      return VOID
    },
  }),
}
