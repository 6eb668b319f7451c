import type { xdr } from '@stellar/stellar-sdk'
import { describe, expect, test } from 'vitest'
import { checkLiveUntil } from '#lib/transfers/call-table.ts'
import { outerFee } from '#lib/transfers/fee-bump.ts'
import {
  checkPolicy,
  checkTimeBounds,
  decodeInner,
  type Intent,
  readIntent,
  type SponsorRules,
} from '#lib/transfers/policy.ts'
import {
  type Change,
  channel,
  NOW,
  PASSPHRASE,
  payee,
  payer,
  rules,
  signedTransfer,
  TOKEN,
} from '../support/inner-transaction.ts'
import { INVALID_CALLS, VALID_CALLS } from './call-cases.ts'
import { POLICY_CASES } from './policy-cases.ts'
import { expectRefusal, expectVerdict } from './refused.ts'

function read({ change, rules: others = {} }: Pick<(typeof POLICY_CASES)[number], 'change' | 'rules'>) {
  const intent = readSponsored(change, { ...rules, ...others })
  checkTimeBounds(intent, NOW)
  return intent
}

function readSponsored(change: Change, given: SponsorRules): Intent {
  const inner = decodeInner(signedTransfer(change), PASSPHRASE)
  const intent = readIntent(inner, given)
  checkPolicy(inner, intent, given)
  return intent
}

test('reads all fields of a valid transfer', () => {
  const { resources, ...intent } = read({ change: {} })
  expect(intent).toEqual({
    contract: TOKEN,
    function: 'confidential_transfer',
    kind: 'transfer',
    account: payer.publicKey(),
    owner: null,
    to: payee.publicKey(),
    minTime: 0n,
    maxTime: BigInt(NOW + 120),
    sequenceNumber: 4_294_967_297n,
    fee: 90_560n,
    resourceFee: 90_460n,
    archived: [],
  })
  expect([resources.instructions, resources.diskReadBytes, resources.writeBytes]).toEqual([40_000_000, 1_200, 2_400])
})

test.each(POLICY_CASES)('$name: $reason', async ({ reason, ...given }) => {
  await expectVerdict(() => read(given), reason)
})

test('has no duplicate case in the table', () => {
  const names = POLICY_CASES.map(({ name }) => name)
  expect(new Set(names).size).toBe(names.length)
})

test('bids twice the inner fee, without rounding', () => {
  expect([1n, 100n, 50_101n, 2n ** 32n - 1n].map(outerFee)).toEqual([2n, 200n, 100_202n, 8_589_934_590n])
})

describe('a call other than a transfer', () => {
  const readCall = (name: string, args: xdr.ScVal[], functions: readonly string[] = [name]) => {
    const rulesOfCalls = { functions: new Set(functions), channels: new Set([channel.publicKey()]), auditorId: 7 }
    const calls = { ...rulesOfCalls, marginLedgers: 36 }
    return readSponsored({ call: { functionName: name, args } }, { ...rules, calls })
  }

  test.each(VALID_CALLS)('reads the arguments of $name', ({ name, args, call }) => {
    expect(readCall(name, args)).toMatchObject({ function: name, account: payer.publicKey(), ...call })
  })

  test.each(INVALID_CALLS)('%s: %s', async (name, _, args, reason) => {
    await expectRefusal(() => readCall(name, args), reason)
  })

  test.each(VALID_CALLS)('refuses $name where it is not sponsored, and as a transfer', async ({ name, args }) => {
    await expectRefusal(() => readCall(name, args, ['another']), 'function')
    const inner = decodeInner(signedTransfer({ call: { functionName: name, args } }), PASSPHRASE)
    await expectRefusal(() => readIntent(inner, rules), 'function')
  })

  test('accepts a delegation from the margin up to 518,400 ledgers ahead', async () => {
    for (const ledger of [1036, 519_400]) checkLiveUntil(ledger, 36, 1000)
    checkLiveUntil(undefined, 36, 1000)
    for (const ledger of [0, 1035, 519_401]) {
      const message = 'sponsor refused: live_until_ledger is out of range: use 1036 to 519400'
      await expectRefusal(() => checkLiveUntil(ledger, 36, 1000), 'live-until', message)
    }
  })
})
