import { type Contract, type ContractFunction, contractFunction } from '../contract-function.ts'
import { encodeAccount, readAccount } from './account.ts'
import { deposit, merge, withdraw } from './balance-functions.ts'
import {
  confidentialTransferFrom,
  getSpenderDelegation,
  isSpender,
  revokeSpender,
  setSpender,
} from './delegation-functions.ts'
import { register } from './register.ts'
import { confidentialTransfer } from './transfer.ts'

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
