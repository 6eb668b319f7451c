import { decodePoint } from '#lib/wallet/grumpkin.ts'
import { contractFunction } from '../contract-function.ts'
import { address, symbol, VOID } from '../scval.ts'
import { addCommitment, NOTHING, readAccount, writeAccount } from './account.ts'
import { decodeCallData, disclosed } from './call-data.ts'
import { auditorKey, checkProof } from './proof.ts'

/**
 * Replaces the sender's spendable commitment and adds to what the recipient receives. The proof names the commitment
 * that it replaces, so one made before any other spending fails with #3506. Errors #3501, #3506, #3507, #3514.
 */
export const confidentialTransfer = contractFunction({
  parameters: { from: 'address', to: 'address', data: 'bytes' },
  returns: 'void',
  instructions: 31_600_000,
  run: (call, { from, to, data }) => {
    call.requireAuth(from)
    const sender = readAccount(call, from)
    const { auditorId, viewingKey } = readAccount(call, to)
    const { payload, proof } = decodeCallData('transfer', data)
    checkProof(
      call,
      {
        circuit: 'transfer',
        token: call.contract,
        spendable: sender.spendable,
        spendingKey: sender.spendingKey,
        viewingKey,
        auditorRecipient: auditorKey(call, auditorId),
        auditorSender: auditorKey(call, sender.auditorId),
        payload,
      },
      proof,
    )
    const { c_spend_new = NOTHING, c_transfer = NOTHING } = payload
    writeAccount(call, from, { ...sender, spendable: c_spend_new })
    // The recipient is read again: in a transfer to oneself it is the entry that was just written.
    const recipient = readAccount(call, to)
    writeAccount(call, to, { ...recipient, receiving: addCommitment(recipient.receiving, decodePoint(c_transfer)) })
    call.publish([symbol('transfer'), address(from), address(to)], disclosed(payload))
    return VOID
  },
})
