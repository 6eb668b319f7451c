import { expect, test } from 'vitest'
import type { Attention } from '#lib/dashboard/attention.ts'
import { messageAbout, titleOf } from '#lib/dashboard/attention-message.ts'

const NOW = new Date('2026-11-20T12:00:00Z')

const ITEM: Attention = {
  key: 'stalled',
  level: 'late',
  since: new Date('2026-11-20T09:00:00Z'),
  what: '4 of 7 unpaid',
  isOngoing: true,
  why: '3 paid & 4 waiting',
  remedy: 'Ask the employer to send the remaining 4 payouts.',
  request: 'Please send the remaining 4 payouts.',
  actor: 'operator',
  organisation: { id: 'o', name: 'Lighthouse Bakery' },
  users: [
    { sub: 'tessa', email: 'tessa+pay@lighthouse.example' },
    { sub: 'GABC', email: null },
  ],
  batch: { id: 'b', name: 'Night shift' },
  contractors: [{ id: 'c', name: 'Ada' }],
  recipients: ['GPAYEE'],
  moreContractors: 3,
  page: '/batches/b',
}

test('names batch, organisation, condition and duration in the title', () => {
  expect(titleOf(ITEM, NOW)).toBe('Night shift · Lighthouse Bakery: 4 of 7 unpaid for 3 h')
  expect(titleOf({ ...ITEM, isOngoing: undefined }, NOW)).toBe('Night shift · Lighthouse Bakery: 4 of 7 unpaid')
  expect(titleOf({ ...ITEM, batch: undefined, name: 'Relay job 1' }, NOW)).toMatch(/^Relay job 1 · Lighthouse Bakery:/)
  const ofService = {
    ...ITEM,
    batch: undefined,
    organisation: undefined,
    since: undefined,
    what: 'no relay is running',
  }
  expect(titleOf(ofService, NOW)).toBe('No relay is running')
})

test('composes an email to the users with an email, with the facts and the request', () => {
  const mail = messageAbout(ITEM, NOW)?.mail ?? ''
  expect(mail).toMatch(/^mailto:tessa%2Bpay%40lighthouse\.example\?subject=/)
  expect(new URL(mail).searchParams.get('body')).toBe(
    [
      'Night shift · Lighthouse Bakery: 4 of 7 unpaid for 3 h.',
      'Since: 2026-11-20 09:00 UTC.',
      'Payees: Ada, GPAYEE and 3 more.',
      'Why: 3 paid & 4 waiting.',
      '',
      'Please send the remaining 4 payouts.',
    ].join('\r\n'),
  )
})

test.each([{ request: undefined }, { users: [] }, { users: [{ sub: 'G', email: null }] }])(
  'composes no email for %j',
  (change) => {
    expect(messageAbout({ ...ITEM, ...change }, NOW)?.mail).toBeUndefined()
  },
)

test('gives words for another contact where the stored one is not to be trusted, and no email', () => {
  const item = { ...ITEM, request: undefined, telling: 'Please pay nothing.' }
  expect(messageAbout(item, NOW)).toMatchObject({
    body: expect.stringMatching(/Please pay nothing\.$/),
    mail: undefined,
  })
})
