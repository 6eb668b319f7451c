import { expect, test } from 'vitest'
import { SPONSOR_REASONS } from '#lib/refusal/refusal.ts'
import { type RefusalReason, SponsorRefusal, sponsorRefused } from '#lib/refusal/sponsor-refusal.ts'
import { CLAIM_CASES } from '../directory/claim-cases.ts'
import { INVALID_CALLS } from '../transfers/call-cases.ts'
import { POLICY_CASES } from '../transfers/policy-cases.ts'
import { QUOTA_CASES } from '../transfers/quota-cases.ts'
import { RIVAL_CASES } from '../transfers/rival-cases.ts'
import { PAYER_CASES, SIGNATURE_CASES } from '../transfers/signature-cases.ts'
import { FEE_CASES, FOOTPRINT_CASES, HOST_ERRORS, RESOURCE_CASES } from '../transfers/simulation-cases.ts'

const messages = Object.entries(SPONSOR_REASONS) as [RefusalReason, string][]

test('covers every reason in a table of cases', () => {
  const tables = [
    POLICY_CASES,
    PAYER_CASES,
    SIGNATURE_CASES,
    RESOURCE_CASES,
    FOOTPRINT_CASES,
    FEE_CASES,
    QUOTA_CASES,
    CLAIM_CASES,
    RIVAL_CASES,
    INVALID_CALLS,
    // Of a delegation: tests/transfers/policy.test.ts.
    [{ reason: 'live-until' }],
    // While payments are stopped: tests/relay/stop.db.test.ts.
    [{ reason: 'reconciling' as const }],
  ]
  const reasons = tables.flat().map((one) => (Array.isArray(one) ? one.at(-1) : one.reason))
  const asserted = new Set<unknown>(reasons)
  if (HOST_ERRORS.length > 0) asserted.add('would-fail')
  expect(messages.filter(([reason]) => !asserted.has(reason))).toEqual([])
})

test.each(messages)('uses the reason %s as the code, and a message that names the sponsor', (reason, message) => {
  const refusal = sponsorRefused(reason)
  expect(refusal).toBeInstanceOf(SponsorRefusal)
  expect(refusal).toMatchObject({ code: reason, reason, message: `sponsor refused: ${message}` })
})

test('appends a detail to the message, or replaces its <time>', () => {
  expect(sponsorRefused('would-fail', { detail: 'Error(Contract, #3506)' }).message).toBe(
    'sponsor refused: the transaction would fail: Error(Contract, #3506)',
  )
  expect(sponsorRefused('another-open', { detail: '2026-03-02T09:00:00.000Z' }).message).toBe(
    'sponsor refused: another transfer of this account is open until 2026-03-02T09:00:00.000Z',
  )
})

test('has a distinct message for each reason', () => {
  expect(new Set(messages.map(([, message]) => message)).size).toBe(messages.length)
})
