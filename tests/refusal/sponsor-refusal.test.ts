import { expect, test } from 'vitest'
import { REFUSALS } from '#lib/refusal/refusal.ts'
import { type RefusalReason, SponsorRefusal, sponsorRefused } from '#lib/refusal/sponsor-refusal.ts'
import { CLAIM_CASES } from '../directory/claim-cases.ts'
import { POLICY_CASES } from '../transfers/policy-cases.ts'
import { QUOTA_CASES } from '../transfers/quota-cases.ts'
import { RIVAL_CASES } from '../transfers/rival-cases.ts'
import { PAYER_CASES, SIGNATURE_CASES } from '../transfers/signature-cases.ts'
import { FEE_CASES, FOOTPRINT_CASES, HOST_ERRORS, RESOURCE_CASES } from '../transfers/simulation-cases.ts'

const messages = Object.entries(REFUSALS[422]) as [RefusalReason, string][]

test('every reason is the outcome of a case in some table', () => {
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
  ]
  const asserted = new Set<string>(tables.flat().flatMap(({ reason }) => (reason ? [reason] : [])))
  if (HOST_ERRORS.length > 0) asserted.add('would-fail')
  expect(messages.filter(([reason]) => !asserted.has(reason))).toEqual([])
})

test.each(messages)('%s: the code is the reason, and the message says who refused', (reason, message) => {
  const refusal = sponsorRefused(reason)
  expect(refusal).toBeInstanceOf(SponsorRefusal)
  expect(refusal).toMatchObject({ code: reason, reason, message: `sponsor refused: ${message}` })
})

test('a detail follows the message, or replaces its <time>', () => {
  expect(sponsorRefused('would-fail', { detail: 'Error(Contract, #3506)' }).message).toBe(
    'sponsor refused: the transaction would fail: Error(Contract, #3506)',
  )
  expect(sponsorRefused('another-open', { detail: '2026-03-02T09:00:00.000Z' }).message).toBe(
    'sponsor refused: another transfer of this account is open until 2026-03-02T09:00:00.000Z',
  )
})

test('no two reasons have the same message', () => {
  expect(new Set(messages.map(([, message]) => message)).size).toBe(messages.length)
})
