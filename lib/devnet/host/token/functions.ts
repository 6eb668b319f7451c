import { type Contract, type ContractFunction, contractFunction } from '../contract-function.ts'
import { contractError, hostError } from '../host-error.ts'
import { bool } from '../scval.ts'
import { encodeAccount, readAccount } from './account.ts'
import { deposit, merge, withdraw } from './balance-functions.ts'
import { register } from './register.ts'
import { confidentialTransfer } from './transfer.ts'

const READ = 600_000

const withoutDelegation = (parameters: ContractFunction['parameters']): ContractFunction =>
  contractFunction({
    parameters,
    returns: 'void',
    instructions: READ,
    run: () => {
      throw contractError(3504, 'there is no delegation: this ledger does not offer spenders')
    },
  })

/**
 * The confidential token, interface 0.8.0, without spenders: none can be set, and functions that need a delegation find
 * none (#3504).
 */
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
      instructions: READ,
      run: (call, { account }) => encodeAccount(readAccount(call, account)),
    }),
    is_spender: contractFunction({
      parameters: { account: 'address', spender: 'address' },
      returns: 'bool',
      instructions: READ,
      run: () => bool(false),
    }),
    set_spender: contractFunction({
      parameters: { account: 'address', spender: 'address', live_until_ledger: 'u32', data: 'bytes' },
      returns: 'void',
      instructions: READ,
      run: () => {
        throw hostError('Context', 'InvalidAction', 'set_spender is not built into this ledger')
      },
    }),
    get_spender_delegation: withoutDelegation({ account: 'address', spender: 'address' }),
    revoke_spender: contractFunction({
      parameters: { account: 'address', spender: 'address' },
      returns: 'void',
      instructions: READ,
      run: (call, { account, spender }) => {
        call.requireAuth(account)
        readAccount(call, account)
        throw contractError(3504, `no delegation to ${spender}`)
      },
    }),
    confidential_transfer_from: withoutDelegation({
      spender: 'address',
      from: 'address',
      to: 'address',
      data: 'bytes',
    }),
  }),
)
