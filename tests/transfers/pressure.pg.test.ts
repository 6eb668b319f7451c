import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildTransfer } from '#lib/wallet/calls.ts'
import type { Payer } from '../support/test-ledger.ts'
import { openTestService, type TestService } from '../support/test-service.ts'

/** Five ledgers' worth of transfers at once, more than twice the capacity of the network's queue. */
const PAYERS = 40

let service: TestService<'embedded'>
const payers: Payer[] = []

beforeAll(async () => {
  service = await openTestService({ ledger: 'embedded', closeMs: 0, variables: { TRANSFER_WAIT: '250' } })
  const closing = keepClosing()
  for (let count = 0; count < PAYERS; count += 4) {
    payers.push(...(await Promise.all(Array.from({ length: 4 }, () => service.ledger.endowPayer(0n)))))
  }
  clearInterval(closing)
})
const keepClosing = () => setInterval(service.ledger.devnet.closeLedger, 200)

afterAll(() => service.close())

test('pays each transfer once, resubmitting while the network’s queue is full', async () => {
  const { network, proxy } = service.ledger
  const prepared = await Promise.all(
    payers.map(async (payer, index) => {
      const to = payers[(index + 1) % PAYERS]?.address ?? ''
      const { signedXdr } = await buildTransfer(
        network,
        payer,
        { to, amount: 0n, opening: payer.opening },
        { seconds: 300 },
      )
      return { session: await service.wallet(payer.address), body: { signedXDR: signedXdr } }
    }),
  )
  proxy.calls.clear()
  const asked = prepared.map((sent) => service.ask('POST', '/transfer', sent))
  // No ledger closes before every transfer has been sent once.
  await expect.poll(() => proxy.calls.get('sendTransaction')).toBe(PAYERS)
  const closing = keepClosing()
  const answers = await Promise.all(asked).finally(() => clearInterval(closing))
  expect(answers.map(({ status, body }) => [status, body])).toEqual(
    prepared.map(() => [200, { hash: expect.stringMatching(/^[0-9a-f]{64}$/), status: 'SUCCESS' }]),
  )
  // Some were resubmitted because the network rejected them or dropped them from its queue.
  expect(proxy.calls.get('sendTransaction')).toBeGreaterThan(PAYERS)
  const ledgers = await Promise.all(
    answers.map(async ({ body }) => (await network.rpc.getTransaction(String(body.hash))).status),
  )
  expect(new Set(ledgers)).toEqual(new Set(['SUCCESS']))
})
