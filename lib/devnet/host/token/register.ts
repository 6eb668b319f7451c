import { contractFunction } from '../contract-function.ts'
import { contractError } from '../host-error.ts'
import { address, struct, symbol, u32, VOID } from '../scval.ts'
import { findAccount, NOTHING, writeAccount } from './account.ts'
import { decodeCallData } from './call-data.ts'
import { auditorKey, checkProof } from './proof.ts'

/** Opens an account with both commitments empty, once per address. Errors #3500, #3301, #3506, #3507, #3514. */
export const register = contractFunction({
  parameters: { account: 'address', auditor_id: 'u32', data: 'bytes' },
  returns: 'void',
  instructions: 30_000_000,
  run: (call, { account, auditor_id, data }) => {
    call.requireAuth(account)
    if (findAccount(call, account)) throw contractError(3500, `account is already registered: ${account}`)
    const { payload, proof } = decodeCallData('register', data)
    const { y = NOTHING, pvk = NOTHING } = payload
    if (isIdentity(y) || isIdentity(pvk)) throw contractError(3514, 'a public key is not the identity')
    auditorKey(call, auditor_id)
    checkProof(call, { circuit: 'register', token: call.contract, account, y, pvk }, proof)
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

const isIdentity = (point: Uint8Array): boolean => point.every((byte) => byte === 0)
