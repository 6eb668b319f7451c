import { type ContractFunction, contractFunction } from '../contract-function.ts'
import { contractError } from '../host-error.ts'
import { address, bool, i128, VOID } from '../scval.ts'
import { administrator, checkClawback, trust, writeAuthorized } from './administration.ts'
import { credit, debit } from './balance.ts'
import { publish } from './events.ts'
import { assetOf, isIssuer, touchInstance } from './metadata.ts'
import { checkAmount } from './transfer-functions.ts'

/** A transfer's instructions: these functions weren't measured on a network. */
const INSTRUCTIONS = 186_705

export const administrativeFunctions: Record<string, ContractFunction> = {
  mint: contractFunction({
    parameters: { to: 'address', amount: 'i128' },
    returns: 'void',
    instructions: INSTRUCTIONS,
    run: (call, { to, amount }) => {
      checkAmount(amount)
      const asset = assetOf(call)
      if (isIssuer(asset, to)) throw contractError(2, 'the issuer cannot be minted to')
      call.requireAuth(administrator(call))
      touchInstance(call)
      credit(call, asset, to, amount)
      publish(call, asset, 'mint', [to], i128(amount))
      return VOID
    },
  }),
  clawback: contractFunction({
    parameters: { from: 'address', amount: 'i128' },
    returns: 'void',
    instructions: INSTRUCTIONS,
    run: (call, { from, amount }) => {
      checkAmount(amount)
      const asset = assetOf(call)
      checkClawback(call, asset, from)
      call.requireAuth(administrator(call))
      touchInstance(call)
      debit(call, asset, from, amount)
      publish(call, asset, 'clawback', [from], i128(amount))
      return VOID
    },
  }),
  set_admin: contractFunction({
    parameters: { new_admin: 'address' },
    returns: 'void',
    instructions: INSTRUCTIONS,
    run: (call, { new_admin }) => {
      const admin = administrator(call)
      call.requireAuth(admin)
      touchInstance(call)
      call.set('Admin', address(new_admin))
      publish(call, assetOf(call), 'set_admin', [admin], address(new_admin))
      return VOID
    },
  }),
  set_authorized: contractFunction({
    parameters: { id: 'address', authorize: 'bool' },
    returns: 'void',
    instructions: INSTRUCTIONS,
    run: (call, { id, authorize }) => {
      call.requireAuth(administrator(call))
      touchInstance(call)
      const asset = assetOf(call)
      writeAuthorized(call, asset, id, authorize)
      publish(call, asset, 'set_authorized', [id], bool(authorize))
      return VOID
    },
  }),
  trust: contractFunction({
    parameters: { addr: 'address' },
    returns: 'void',
    instructions: INSTRUCTIONS,
    run: (call, { addr }) => {
      touchInstance(call)
      trust(call, assetOf(call), addr)
      return VOID
    },
  }),
}
