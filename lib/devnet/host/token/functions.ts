import { type Contract, type ContractFunction, contractFunction } from '../contract-function.ts'
import { contractError } from '../host-error.ts'
import { address, struct, symbol, u32, VOID } from '../scval.ts'
import { encodeAccount, findAccount, NOTHING, readAccount, writeAccount } from './account.ts'
import { deposit, merge, withdraw } from './balance-functions.ts'
import { decodeCallData } from './call-data.ts'
import {
  confidentialTransferFrom,
  getSpenderDelegation,
  isSpender,
  revokeSpender,
  setSpender,
} from './delegation-functions.ts'
import { auditorKey, checkProof, requireAddressAsField } from './proof.ts'
import { confidentialTransfer } from './transfer.ts'

/** Opens an account with both commitments empty, once per address. Errors #3507, #3301, #3514, #3506, #3500. */
const register = contractFunction({
  parameters: { account: 'address', auditor_id: 'u32', data: 'bytes' },
  returns: 'void',
  instructions: 3_500_000,
  run: (call, { account, auditor_id, data }) => {
    call.requireAuth(account)
    const { payload, proof } = decodeCallData('register', data)
    const { y = NOTHING, pvk = NOTHING } = payload
    auditorKey(call, auditor_id)
    requireAddressAsField(call)
    checkProof(call, payload, { circuit: 'register', token: call.contract, account, y, pvk }, proof)
    if (findAccount(call, account)) throw contractError(3500, `account is already registered: ${account}`)
    writeAccount(call, account, {
      auditorId: auditor_id,
      receiving: NOTHING,
      spendable: NOTHING,
      spendingKey: y,
      viewingKey: pvk,
    })
    call.publish([symbol('register'), address(account)], struct({ auditor_id: u32(auditor_id) }))
    return VOID
  },
})

/** The confidential token, interface 0.8.0. */
export const confidentialToken: Contract = new Map(
  Object.entries<ContractFunction>({
    register,
    deposit,
    merge,
    withdraw,
    confidential_transfer: confidentialTransfer,
    confidential_balance: contractFunction({
      parameters: { account: 'address' },
      returns: 'account',
      instructions: 600_000,
      run: (call, { account }) => encodeAccount(readAccount(call, account)),
    }),
    is_spender: isSpender,
    set_spender: setSpender,
    get_spender_delegation: getSpenderDelegation,
    revoke_spender: revokeSpender,
    confidential_transfer_from: confidentialTransferFrom,
  }),
)
