import { decodePoint } from '#lib/wallet/grumpkin.ts'
import { contractFunction } from '../contract-function.ts'
import { address, symbol, VOID } from '../scval.ts'
import { addCommitment, NOTHING, readAccount, writeAccount } from './account.ts'
import { decodeCallData, eventData } from './call-data.ts'
import { auditorKey, checkProof, requireAddressAsField } from './proof.ts'

/**
 * Replaces the sender's spendable commitment and adds to the recipient's receiving commitment. The proof names the
 * commitment that it replaces, so a proof made before another payment fails. Errors #3507, #3501, #3301, #3514, #3506.
 */
export const confidentialTransfer = contractFunction({
  parameters: { from: 'address', to: 'address', data: 'bytes' },
  returns: 'void',
  instructions: 6_100_000,
  run: (call, { from, to, data }) => {
    call.requireAuth(from)
    const { payload, proof } = decodeCallData('transfer', data)
    const sender = readAccount(call, from)
    const { auditorId, viewingKey } = readAccount(call, to)
    const auditorRecipient = auditorKey(call, auditorId)
    const auditorSender = auditorKey(call, sender.auditorId)
    requireAddressAsField(call)
    checkProof(
      call,
      payload,
      {
        circuit: 'transfer',
        token: call.contract,
        spendable: sender.spendable,
        spendingKey: sender.spendingKey,
        viewingKey,
        auditorRecipient,
        auditorSender,
        payload,
      },
      proof,
    )
    const { c_spend_new = NOTHING, c_transfer = NOTHING } = payload
    writeAccount(call, from, { ...sender, spendable: c_spend_new })
    // The recipient is read again, because in a transfer to oneself its entry was just written.
    const recipient = readAccount(call, to)
    writeAccount(call, to, { ...recipient, receiving: addCommitment(recipient.receiving, decodePoint(c_transfer)) })
    call.publish([symbol('transfer'), address(from), address(to)], eventData(payload))
    return VOID
  },
})
