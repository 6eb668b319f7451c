import { expect, test } from 'vitest'
import { authOf } from '#lib/ledger/account.ts'
import { decodeInner } from '#lib/sponsor/inner-transaction.ts'
import { checkSignatures, isSignedByMasterAlone } from '#lib/sponsor/signatures.ts'
import { accountEntry, signerKey } from '../support/fake-rpc.ts'
import { PASSPHRASE, pair, payer, signedTransfer } from '../support/inner-transaction.ts'
import { expectRefusal } from './refused.ts'
import { SIGNATURE_CASES } from './signature-cases.ts'

test.each(SIGNATURE_CASES)('$name: $reason', async ({ envelope, account, reason, masterAlone = false }) => {
  const inner = decodeInner(envelope, PASSPHRASE)
  expect(isSignedByMasterAlone(inner)).toBe(masterAlone)
  if (reason) await expectRefusal(() => checkSignatures(inner, account), reason)
  else checkSignatures(inner, account)
})

test('the master key alone is believed unread, even where it has lost its weight: the network refuses it unpaid', async () => {
  const inner = decodeInner(signedTransfer(), PASSPHRASE)
  const signers = [{ key: signerKey(pair('bob')), weight: 1 }]
  const account = authOf(payer.publicKey(), accountEntry(payer.publicKey(), { thresholds: [0, 0, 0, 0], signers }))
  expect(isSignedByMasterAlone(inner)).toBe(true)
  await expectRefusal(() => checkSignatures(inner, account), 'bad-signature')
})
