import { expect, test } from 'vitest'
import { outerFee } from '#lib/transfers/fee-bump.ts'
import { checkTimeBounds, decodeInner, readIntent } from '#lib/transfers/policy.ts'
import { NOW, PASSPHRASE, payee, payer, rules, signedTransfer, TOKEN } from '../support/inner-transaction.ts'
import { POLICY_CASES } from './policy-cases.ts'
import { expectRefusal } from './refused.ts'

function read({ change, rules: others = {} }: Pick<(typeof POLICY_CASES)[number], 'change' | 'rules'>) {
  const intent = readIntent(decodeInner(signedTransfer(change), PASSPHRASE), { ...rules, ...others })
  checkTimeBounds(intent, NOW)
  return intent
}

test('reads all fields of a valid transfer', () => {
  const { resources, ...intent } = read({ change: {} })
  expect(intent).toEqual({
    contract: TOKEN,
    function: 'confidential_transfer',
    kind: 'transfer',
    account: payer.publicKey(),
    owner: payer.publicKey(),
    to: payee.publicKey(),
    minTime: 0n,
    maxTime: BigInt(NOW + 120),
    sequenceNumber: 4_294_967_297n,
    fee: 90_560n,
    resourceFee: 90_460n,
  })
  expect([resources.instructions, resources.diskReadBytes, resources.writeBytes]).toEqual([40_000_000, 1_200, 2_400])
})

test.each(POLICY_CASES)('$name: $reason', async ({ reason, ...given }) => {
  if (reason) await expectRefusal(() => read(given), reason)
  else expect(read(given).owner).toMatch(/^G/)
})

test('has no duplicate case in the table', () => {
  const names = POLICY_CASES.map(({ name }) => name)
  expect(new Set(names).size).toBe(names.length)
})

test('bids twice the inner fee, without rounding', () => {
  expect([1n, 100n, 50_101n, 2n ** 32n - 1n].map(outerFee)).toEqual([2n, 200n, 100_202n, 8_589_934_590n])
})
