import { contractFunction } from '../contract-function.ts'
import { contractError } from '../host-error.ts'
import { address, struct, symbol, u32, VOID } from '../scval.ts'
import { findAccount, NOTHING, writeAccount } from './account.ts'
import { decodeCallData } from './call-data.ts'
import { auditorKey, checkProof, requireAddressAsField } from './proof.ts'

/** Opens an account with both commitments empty, once per address. Errors #3507, #3301, #3514, #3506, #3500. */
export const register = contractFunction({
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
