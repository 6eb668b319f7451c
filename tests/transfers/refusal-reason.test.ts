import { expect, test } from 'vitest'
import { REFUSAL_REASONS, type RefusalReason, SponsorRefusal, sponsorRefused } from '#lib/transfers/refusal-reason.ts'
import { CLAIM_CASES } from '../directory/claim-cases.ts'
import { MESSAGES } from './messages.ts'
import { POLICY_CASES } from './policy-cases.ts'
import { QUOTA_CASES } from './quota-cases.ts'
import { RIVAL_CASES } from './rival-cases.ts'
import { PAYER_CASES, SIGNATURE_CASES } from './signature-cases.ts'
import { FEE_CASES, FOOTPRINT_CASES, HOST_ERRORS, RESOURCE_CASES } from './simulation-cases.ts'

const reasons = Object.keys(REFUSAL_REASONS) as RefusalReason[]

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
  expect(reasons.filter((reason) => !asserted.has(reason))).toEqual([])
})

test.each(reasons)('%s: the words that callers read', (reason) => {
  const refusal = sponsorRefused(reason)
  expect(refusal).toBeInstanceOf(SponsorRefusal)
  expect(refusal).toMatchObject({ code: reason, reason, message: MESSAGES[reason] })
  expect(sponsorRefused(reason, { detail: 'a detail' }).message).toBe(
    MESSAGES[reason].includes('<time>')
      ? MESSAGES[reason].replace('<time>', 'a detail')
      : `${MESSAGES[reason]}: a detail`,
  )
})

test('no two reasons read alike', () => {
  expect(new Set(Object.values(MESSAGES)).size).toBe(reasons.length)
})
