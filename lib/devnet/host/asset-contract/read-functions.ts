import { type ContractFunction, contractFunction, type Returns } from '../contract-function.ts'
import { address, bool, fieldsOf, i128, VOID } from '../scval.ts'
import { administrator, readAuthorized } from './administration.ts'
import { readAllowance } from './allowance.ts'
import { readBalance } from './balance.ts'
import { assetOf, touchInstance } from './metadata.ts'

/** The network meters 77,000 to 147,000 instructions for reading calls. The split by function is an estimate. */
const INSTRUCTIONS = { metadata: 77_000, balance: 120_000, allowance: 147_000 }

const readMetadata = (field: string, returns: Returns): ContractFunction =>
  contractFunction({
    parameters: {},
    returns,
    instructions: INSTRUCTIONS.metadata,
    run: (call) => fieldsOf(call.setting('METADATA'))?.get(field) ?? VOID,
  })

export const readFunctions: Record<string, ContractFunction> = {
  balance: contractFunction({
    parameters: { id: 'address' },
    returns: 'i128',
    instructions: INSTRUCTIONS.balance,
    run: (call, { id }) => {
      touchInstance(call)
      return i128(readBalance(call, assetOf(call), id))
    },
  }),
  allowance: contractFunction({
    parameters: { from: 'address', spender: 'address' },
    returns: 'i128',
    instructions: INSTRUCTIONS.allowance,
    run: (call, allowance) => {
      touchInstance(call)
      return i128(readAllowance(call, allowance).amount)
    },
  }),
  authorized: contractFunction({
    parameters: { id: 'address' },
    returns: 'bool',
    instructions: INSTRUCTIONS.balance,
    run: (call, { id }) => {
      touchInstance(call)
      return bool(readAuthorized(call, assetOf(call), id))
    },
  }),
  admin: contractFunction({
    parameters: {},
    returns: 'address',
    instructions: INSTRUCTIONS.metadata,
    run: (call) => address(administrator(call)),
  }),
  decimals: readMetadata('decimal', 'u32'),
  name: readMetadata('name', 'string'),
  symbol: readMetadata('symbol', 'string'),
}
