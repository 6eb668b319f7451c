import { expect, test } from 'vitest'
import { presentVerified } from '#lib/cli/client/disclosure.ts'
import { ZK_PROOF_BYTES } from '#lib/disclosure/bundle.ts'
import { readPayment } from '#lib/disclosure/payment.ts'
import { disclosePayments } from '#lib/disclosure/payment-disclosure.ts'
import { createRequest, type DisclosureRequest, type Question } from '#lib/disclosure/request.ts'
import { seeded, TOKEN } from '../wallet/fixtures.ts'
import { PASSPHRASE } from './fake-ledger.ts'
import { openCase, PERIOD, REQUESTER } from './honest.ts'

const given = openCase()
const { ledger, contractor, toItself, paid } = given
const prover = { prove: async () => new Uint8Array(ZK_PROOF_BYTES) }
const context = { source: ledger.source(), prover, random: seeded('self-payments') }
const about = { network: PASSPHRASE, token: TOKEN, account: contractor.address, role: 'recipient' } as const

const requestOf = (question: Question) => {
  const request = createRequest(REQUESTER, question, seeded('request'))
  if (request.statement === 'balance') throw new Error('another request')
  return request
}
const disclose = (request: Exclude<DisclosureRequest, { statement: 'balance' }>, events = [...paid, ...toItself]) =>
  disclosePayments(
    context,
    request,
    contractor,
    events.map((event) => readPayment(event, TOKEN)),
  )

test.each([undefined, '0.0000500'])('a total leaves out what an account paid itself: at least %s', async (atLeast) => {
  const question = { ...about, statement: 'total', period: PERIOD, ...(atLeast && { atLeast }) } as const
  const { payments, ...leftOut } = await disclose(requestOf(question))
  expect(leftOut).toMatchObject({ byChannels: 0, toItself: 1 })
  expect(payments.map(({ value }) => value).toSorted()).toEqual(atLeast ? [500n] : [30n, 500n, 7n])
  await expect(disclose(requestOf(question), toItself)).rejects.toMatchObject({ code: 'not-true' })
})

test('one payment of an account to itself is disclosed, and shown as no income', async () => {
  const request = requestOf({ ...about, statement: 'payment' })
  const { payments } = await disclose(request, toItself)
  expect(payments).toHaveLength(1)
  const verified = { value: 11n, subtotals: [11n], payments: payments.map(({ payment }) => payment), forgeable: false }
  expect(presentVerified(request, verified)).toContain(`to ${contractor.address} (itself: no income)  ledger`)
})

test('a verified balance names its ledger and time, and what “at most” does not include', () => {
  const question = { network: PASSPHRASE, token: TOKEN, account: contractor.address, atMost: '5.0000000' }
  const request = createRequest(REQUESTER, { ...question, statement: 'balance' }, seeded('request'))
  const asOf = { ledger: 77, closedAt: '2026-07-01T00:00:00.000Z' }
  const text = presentVerified(request, { value: undefined, subtotals: [], payments: [], asOf, forgeable: false })
  expect(text.split('\n')).toEqual([
    'verified at most 5.0000000',
    `the balance of at most 5.0000000 of ${contractor.address}, at ledger 77, which closed at 2026-07-01T00:00:00.000Z, or later`,
    'An account may hold more: what it has received and not merged, and what it has escrowed for channels.',
  ])
})
