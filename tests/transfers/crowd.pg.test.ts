import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { enrol } from '#lib/cli/client/participants.ts'
import type { Call, Fault } from '../support/fault-proxy.ts'
import { expectSponsoredOnce } from '../support/paid-once.ts'
import { shareService } from '../support/shared-service.ts'
import type { TestService } from '../support/test-service.ts'
import { next, prepareTransfer, sendAnswer } from '../support/transfers.ts'

let service: TestService<'embedded'>
let payee: string
beforeAll(async () => {
  service = await shareService('embedded')
  payee = (await enrol(service.ledger.network)).signer.publicKey()
})
afterAll(() => service.close())
afterEach(() => service.ledger.proxy.rule(null))

/** More transfers than a ledger has room for. */
const crowd = () => Promise.all(Array.from({ length: 14 }, () => prepareTransfer(service, payee, { amount: 0n })))
const pages = (fault: Fault) => (call: Call) => (call.method === 'getTransactions' ? fault : 'pass')
const FAULTS: [string, () => (call: Call) => Fault][] = [
  ['nothing wrong', () => () => 'pass'],
  ['pages that fail', () => pages({ status: 500 })],
  ['pages cut short without a word', () => pages({ rewrite: (page) => ({ ...page, transactions: [] }) })],
  ['half of them lost on the way', () => next('sendTransaction', 7, { answer: sendAnswer('PENDING') })],
]
test.each(FAULTS)('pays fourteen concurrent transfers once each: %s', async (_, fault) => {
  const prepared = await crowd()
  service.ledger.proxy.rule(fault())
  const answers = await Promise.all(prepared.map(({ post }) => post()))
  expect(answers.map(({ status }) => status)).toEqual(prepared.map(() => 200))
  service.ledger.proxy.rule(null)
  for (const { employer, hash } of prepared) await expectSponsoredOnce(service, employer, hash)
})
