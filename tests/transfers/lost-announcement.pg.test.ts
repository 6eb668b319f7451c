import { afterAll, beforeAll, expect, test } from 'vitest'
import { enrol } from '#lib/cli/client/participants.ts'
import { expectSponsoredOnce } from '../support/paid-once.ts'
import { openTestService, type TestService } from '../support/test-service.ts'
import { prepareTransfer } from '../support/transfers.ts'

let service: TestService<'embedded'>
let isLosing = false
beforeAll(async () => {
  const loses = ({ attempt }: { attempt: number }) => (isLosing && attempt === 1 ? 'announcement' : undefined)
  service = await openTestService({ ledger: 'embedded', loses })
})
afterAll(() => service?.close())

test('resubmits an envelope that never reached the validator until it is paid, once per ledger', async () => {
  const { rpc, ...network } = service.ledger.network
  const payee = (await enrol({ rpc, ...network })).signer.publicKey()
  const { employer, hash, post } = await prepareTransfer(service, payee)
  const { latestLedger: before } = await rpc.getHealth()
  service.ledger.proxy.calls.clear()
  isLosing = true
  expect(await post()).toMatchObject({ status: 200 })
  const { ledger } = (await rpc.getTransaction(hash)) as { ledger: number }
  // Four ledgers in the queue of the RPC's node, and ten of ban.
  expect(ledger - before).toBeGreaterThanOrEqual(15)
  expect(service.ledger.proxy.calls.get('sendTransaction')).toBeLessThanOrEqual(ledger - before + 1)
  await expectSponsoredOnce(service, employer, hash)
})
