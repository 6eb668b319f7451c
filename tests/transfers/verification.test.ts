import { expect, test } from 'vitest'
import { decodeInner } from '#lib/transfers/policy.ts'
import { checkPayer, checkSignatures } from '#lib/transfers/verification.ts'
import { accountEntry } from '../support/fake-rpc.ts'
import { PASSPHRASE, payer, signedTransfer } from '../support/inner-transaction.ts'
import { expectVerdict, thrownBy } from './refused.ts'
import { PAYER_CASES, SIGNATURE_CASES } from './signature-cases.ts'

test.each(SIGNATURE_CASES)('%s', async (_, envelope, account, reason) => {
  const inner = decodeInner(envelope, PASSPHRASE)
  await expectVerdict(() => checkSignatures(inner, account), reason)
})

const inner = decodeInner(signedTransfer({ tx: { seqNum: 8n } }), PASSPHRASE)

test.each(PAYER_CASES)('$name: $reason', async ({ used, reason }) => {
  const account = used === null ? undefined : accountEntry(payer.publicKey(), { sequence: used })
  await expectVerdict(() => checkPayer(inner, { account, latestLedger: 42 }), reason)
})

test('names the ledger in the refusal of a wrong sequence number', async () => {
  const account = accountEntry(payer.publicKey(), { sequence: 6n })
  expect(await thrownBy(() => checkPayer(inner, { account, latestLedger: 42 }))).toMatchObject({ asOf: 42 })
})
