import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildTransfer } from '#lib/wallet/calls.ts'
import { disposable } from '../support/disposable.ts'
import { openTestService, type TestService } from '../support/test-service.ts'
import { sendAnswer } from '../support/transfers.ts'

let service: TestService<'embedded'>
beforeAll(async () => {
  service = await openTestService({ ledger: 'embedded', closeMs: 0, variables: { TRANSFER_WAIT: '60' } })
})
afterAll(() => service?.close())

/** A transfer between two new accounts that is valid for five minutes. */
async function prepare({ ledger, wallet, ask }: TestService<'embedded'>) {
  const [payer, payee] = await Promise.all([ledger.endowPayer(), ledger.endowPayer(0n)])
  const transfer = { to: payee.address, amount: 1n, opening: payer.opening }
  const { signedXdr } = await buildTransfer(ledger.network, payer, transfer, { seconds: 300 })
  const session = await wallet(payer.address)
  return () => ask('POST', '/transfer', { session, body: { signedXDR: signedXdr } })
}

const SHIFT = 5

/** A response of a network with higher ledger numbers. */
function shifted(answer: Record<string, unknown>): Record<string, unknown> {
  const { latestLedger } = answer
  return typeof latestLedger === 'number' ? { ...answer, latestLedger: latestLedger + SHIFT } : answer
}

/** A response of a node whose latest ledger is this many ledgers and seconds later. */
const atLedger = (ledgers: number, seconds: number) => (answer: Record<string, unknown>) => {
  const { latestLedger, latestLedgerCloseTime } = answer
  if (typeof latestLedger !== 'number') return answer
  const closedAt = String(Number(latestLedgerCloseTime) + seconds)
  return { ...answer, latestLedger: latestLedger + ledgers, latestLedgerCloseTime: closedAt }
}
/** A node that stopped a minute ago. */
const farBehind = atLedger(-12, -60)
/** An RPC that misreports its latest ledger. */
const farAhead = atLedger(1_000_000, 5_000_000)

test('does not wait for the old ledger numbers on a network restored with lower ones', async () => {
  const { devnet, network, proxy } = service.ledger
  const closing = setInterval(devnet.closeLedger, 200)
  const post = await prepare(service)
  clearInterval(closing)
  await devnet.closeLedger()
  proxy.rule(({ method }) => (method === 'sendTransaction' ? { answer: sendAnswer('PENDING') } : { rewrite: shifted }))
  const posted = post()
  const lookUps = () => proxy.calls.get('getTransaction') ?? 0
  await expect.poll(lookUps).toBeGreaterThan(2)
  const shown = Math.floor(Date.now() / 1000)
  // The time of a ledger is a whole second.
  await expect.poll(() => Math.floor(Date.now() / 1000)).toBeGreaterThan(shown + 1)
  const sent = Promise.withResolvers<void>()
  proxy.rule(({ method }) => {
    if (method === 'sendTransaction') sent.resolve()
    return 'pass'
  })
  // Only two ledgers close: with the first the service sees the new numbers, and the second applies the transfer.
  await devnet.closeLedger()
  await Promise.race([sent.promise, posted])
  await expect.poll(async () => (await network.rpc.getHealth()).status).toBe('healthy')
  await devnet.closeLedger()
  expect(await posted).toMatchObject({ status: 200 })
})

test('does not assume a reset, and submits nothing again, if every second response is from a node far behind', async () => {
  const { devnet, proxy } = service.ledger
  const closing = setInterval(devnet.closeLedger, 200)
  const post = await prepare(service)
  clearInterval(closing)
  await devnet.closeLedger()
  let sent = 0
  let asked = 0
  proxy.rule(({ method }) => {
    if (method === 'sendTransaction') {
      sent += 1
      return { answer: sendAnswer('PENDING') }
    }
    if (method !== 'getTransaction') return 'pass'
    asked += 1
    return asked % 2 === 0 ? { rewrite: farBehind } : 'pass'
  })
  const posted = post()
  await expect.poll(() => sent).toBe(1)
  const before = asked
  await expect.poll(() => asked).toBeGreaterThan(before + 20)
  // No ledger has closed meanwhile.
  expect(sent).toBe(1)
  proxy.rule(null)
  // From here on ledgers close continuously: a single one could close before it includes the submitted transaction.
  const following = setInterval(devnet.closeLedger, 200)
  expect(await posted.finally(() => clearInterval(following))).toMatchObject({ status: 200 })
})

test('forgets a response from the far future after half a minute, and resubmits dropped envelopes', async () => {
  const now = new Date()
  await using own = disposable(
    await openTestService({ ledger: 'embedded', closeMs: 200, now, variables: { TRANSFER_WAIT: '60' } }),
  )
  const { proxy } = own.ledger
  const post = await prepare(own)
  let lied = false
  let dropped = 0
  proxy.rule(({ method }) => {
    if (method === 'sendTransaction') {
      if (dropped === 2) return 'pass'
      dropped += 1
      return { answer: sendAnswer('PENDING') }
    }
    if (method !== 'getTransaction' || dropped === 0 || lied) return 'pass'
    lied = true
    return { rewrite: farAhead }
  })
  const posted = post()
  await expect.poll(() => dropped).toBe(2)
  own.clock.now = new Date(now.getTime() + 31_000)
  expect(await posted).toMatchObject({ status: 200 })
})
