import { expect, test } from 'vitest'
import { adviseOn, explainPayout } from '#lib/dashboard/explanation.ts'

const STALE = { status: 'failed', resultCode: 'txFailed', contractError: 3506, refusalCode: null } as const

test.each([
  ['allowance-short', /^the escrow does not cover .* \(allowance-short\)$/, ' in a run with a new delegation'],
  ['recipient-unregistered', /not registered with the token/, ' after the contractor has registered with the token'],
])('explains a payout that a run could not pay, even after a failed transfer: %s', (error, meaning, advice) => {
  for (const outcome of [null, STALE]) {
    expect(explainPayout({ error, outcome })).toMatch(meaning)
    expect(adviseOn({ error, outcome })).toBe(advice)
  }
})

test('explains a payout by its transfer, and not at all without one', () => {
  expect(explainPayout({ error: 'failed', outcome: STALE })).toMatch(/proof does not match/)
  expect(adviseOn({ error: 'failed', outcome: STALE })).toBe(', with a new proof for each')
  expect([explainPayout({ error: 'toString', outcome: null }), adviseOn({ error: null, outcome: null })]).toEqual([
    '',
    '',
  ])
})
