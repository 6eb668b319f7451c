import { expect, test } from 'vitest'
import { Refusal } from '#lib/refusal/refusal.ts'
import { SponsorRefusal, sponsorRefused } from '#lib/refusal/sponsor-refusal.ts'

// A build bundles the class for startup and for the routes.
test('an error of another copy of the class is a refusal, and no other error is', () => {
  const { name, message, stack } = new Refusal('job-not-found')
  expect(Object.assign(new Error(message), { name, stack })).toBeInstanceOf(Refusal)
  expect(new Refusal('job-not-found')).toBeInstanceOf(Refusal)
  for (const other of [new Error('Refusal'), new TypeError('x'), { name: 'Refusal' }, 'Refusal', undefined]) {
    expect(other).not.toBeInstanceOf(Refusal)
  }
})

test('a refusal of the sponsor is a refusal, and no other refusal is one of the sponsor', () => {
  expect(sponsorRefused('payout')).toBeInstanceOf(Refusal)
  expect(sponsorRefused('payout')).toBeInstanceOf(SponsorRefusal)
  expect(new Refusal('payout')).not.toBeInstanceOf(SponsorRefusal)
})
