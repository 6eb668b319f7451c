import { expect, test } from 'vitest'
import { describeCauses, type FailedFor, stepAfter } from '#lib/dashboard/causes.ts'
import { causeOfPayout, explainLine } from '#lib/dashboard/explanation.ts'

const outcome = { status: 'failed', resultCode: 'txFailed', contractError: null, refusalCode: null } as const
const STALE = { ...outcome, contractError: 3506 }

type Payout = Parameters<typeof causeOfPayout>[0]

/** Payouts that failed for a reason. */
const failed = (payout: Payout, count = 1): FailedFor => ({ count, ...causeOfPayout(payout) })

const AGAIN = 'send them again'
const remedyOf = (...failures: FailedFor[]) => stepAfter(failures, AGAIN).remedy

test.each([
  ['allowance-short', /^the escrow does not cover .* \(allowance-short\)$/, ' in a run with a new delegation'],
  ['recipient-unregistered', /not registered with the token/, ' after the recipient has registered with the token'],
])('explains a payout that a run could not pay, even after a failed transfer: %s', (error, meaning, how) => {
  for (const transfer of [null, STALE]) {
    const failure = failed({ error, outcome: transfer })
    expect(failure.meaning).toMatch(meaning)
    expect(remedyOf(failure)).toBe(`Ask the employer to ${AGAIN}${how}.`)
  }
})

test('explains a payout by its transfer, and not at all without one', () => {
  expect(failed({ error: 'failed', outcome: STALE }).meaning).toMatch(/proof does not match/)
  expect(failed({ error: 'toString', outcome: null }).meaning).toBe('')
  expect(remedyOf(failed({ error: null, outcome: null }))).toBe(`Ask the employer to ${AGAIN}.`)
})

test.each([
  [
    { contractError: 3501 },
    'employer',
    'Ask the employer to send them again after the sender and the recipient have registered',
  ],
  [{ contractError: 3506 }, 'employer', 'Ask the employer to send them again with a new proof.'],
  [
    { contractError: 3507 },
    'employer',
    'Ask the employer to send them again after the developer of the application has ',
  ],
  [{ contractError: 3999 }, 'operator', 'Ask the token’s operator what contract error 3999 (interface 0.8.0) means, '],
  [
    { status: 'expired', resultCode: null, refusalCode: 'txInsufficientBalance' },
    'operator',
    'Send XLM to the sponsor',
  ],
  [{ resultCode: 'txBadAuth' }, 'employer', 'Ask the employer to send them again with the current signers '],
] as const)('removes the cause before a payout is sent again: %j', (fields, actor, start) => {
  const step = stepAfter([failed({ error: 'failed', outcome: { ...outcome, ...fields } })], AGAIN)
  expect(step.actor).toBe(actor)
  expect(step.remedy).toSatisfy((remedy: string) => remedy.startsWith(start))
  expect(step.remedy).toContain('sk the employer to send them again')
  expect(step.remedy).not.toMatch(/\b(if|unless)\b/)
})

test('has an account unfrozen by the token’s operator, not by the employer', () => {
  const step = stepAfter([failed({ error: 'account-frozen', outcome: null })], AGAIN)
  expect(step).toMatchObject({
    actor: 'operator',
    remedy:
      'Ask the token’s operator whether the employer’s or the recipient’s account is frozen, and to unfreeze it; then ask the employer to send them again.',
    request: 'The cause has been removed. Please open your payroll application and send them again.',
  })
})

test('counts the reasons of several failures, and says how each is sent again', () => {
  const stale = failed({ error: 'failed', outcome: STALE }, 2)
  const unregistered = failed({ error: 'recipient-unregistered', outcome: null })
  expect(describeCauses([unregistered, stale, unregistered, stale])).toMatch(
    /^4: the proof does not match .*; 2: the recipient.s account is not registered/,
  )
  expect(remedyOf(unregistered, stale, unregistered, stale)).toBe(
    'Ask the employer to send them again: 4 with a new proof for each; 2 after the recipients have registered with the token.',
  )
  const others = ['a', 'b', 'c', 'd', 'e'].map((meaning, index) => ({ ...stale, meaning, count: 9 - index }))
  expect(describeCauses(others)).toBe('9: a; 8: b; 7: c; 11: other reasons')
  expect(describeCauses([])).toBe('')
})

test.each([
  ['recipient-unregistered', /is not registered .* \(recipient-unregistered\)$/, ' after the recipient has registered'],
  ['contract-error-3501', /3501/, ' after the sender and the recipient have registered'],
  ['contract-error-3999', 'contract error 3999', 'what contract error 3999 (interface 0.8.0) means'],
  ['failed-too-often', /too often/, 'Remove the cause for which its transfers failed'],
  ['daily-budget', /budget/, 'Raise SPONSOR_DAILY_BUDGET'],
  ['quota-stroops', /quota/, ' tomorrow'],
  ['contract-error-3602', /3602/, 'Ask the token’s operator whether '],
  ['delegation-ended', /\(delegation-ended\)$/, ' in a run with a new delegation'],
  ['employer-paid', /\(employer-paid\)$/, ' in a new run, or cancel it if it was paid already'],
  ['too-late', /within a day/, `Ask the employer to ${AGAIN}.`],
])('explains a line and removes its cause: %s', (error, meaning, words) => {
  const cause = explainLine(error)
  expect(cause.meaning).toMatch(meaning)
  expect(remedyOf({ ...cause, count: 1 })).toContain(words)
})

test('explains a payout that a run failed by the run’s error, and not by an earlier transfer', () => {
  const expired = { ...outcome, status: 'expired', resultCode: null } as const
  for (const error of ['daily-budget', 'contract-error-3999']) {
    const failure = failed({ error, outcome: expired })
    expect(failure.meaning).toBe(explainLine(error).meaning)
    expect(failure.advice.first).toBeDefined()
  }
})

test('says of which failures the counts are, if more were not read', () => {
  const failures = [
    failed({ error: 'failed', outcome: STALE }, 150),
    failed({ error: 'allowance-short', outcome: null }, 50),
  ]
  expect(stepAfter(failures, 'send the 900 failed payouts again', { sample: 'of the last 200' }).remedy).toBe(
    'Ask the employer to send the 900 failed payouts again, of the last 200: 150 with a new proof for each; 50 in a run with a new delegation.',
  )
})

test('advises by how the transfer ended, not by an earlier refusal of its envelope', () => {
  const refused = { ...outcome, refusalCode: 'txInsufficientBalance' }
  expect(remedyOf(failed({ error: 'failed', outcome: refused }))).toBe(
    `Ask the employer to ${AGAIN} after a new simulation.`,
  )
  expect(remedyOf(failed({ error: 'failed', outcome: { ...refused, status: 'expired', resultCode: null } }))).toMatch(
    /^Send XLM to the sponsor/,
  )
})
