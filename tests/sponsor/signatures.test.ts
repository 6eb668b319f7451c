import { expect, test } from 'vitest'
import { decodeInner } from '#lib/sponsor/inner-transaction.ts'
import { checkSignatures } from '#lib/sponsor/signatures.ts'
import { PASSPHRASE } from '../support/inner-transaction.ts'
import { expectRefusal } from './refused.ts'
import { SIGNATURE_CASES } from './signature-cases.ts'

test.each(SIGNATURE_CASES)('$name: $reason', async ({ envelope, account, reason }) => {
  const inner = decodeInner(envelope, PASSPHRASE)
  const check = () => checkSignatures(inner, account)
  if (reason) await expectRefusal(check, reason)
  else expect(check).not.toThrow()
})
