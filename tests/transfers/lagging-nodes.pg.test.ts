import { afterAll, beforeAll, expect, test } from 'vitest'
import { endow } from '#lib/cli/client/participants.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import { buildTransfer } from '#lib/wallet/calls.ts'
import { catchUp, enrolUnevenly, LAG } from '../support/lagging-nodes.ts'
import { openTestService, type TestService } from '../support/test-service.ts'

let service: TestService<'embedded'>
beforeAll(async () => {
  service = await openTestService({ ledger: 'embedded', lag: LAG, variables: { TRANSFER_WAIT: '60' } })
})
afterAll(() => service?.close())

/** A wallet that retries after a refusal by a node if another one may accept. */
async function insist<Result>(build: () => Promise<Result>): Promise<Result> {
  for (let turn = 1; ; turn += 1) {
    const result = await build().catch((error: unknown) => {
      if (turn === 60) throw error
    })
    if (result !== undefined) return result
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

test('sponsors consecutive transfers and pays each once if one of two nodes lags', async () => {
  const { network, issuer } = service.ledger
  const payee = await enrolUnevenly(network)
  const payer = await enrolUnevenly(network)
  await catchUp(network)
  let opening = await insist(() => endow(network, issuer, payer, 1_000n))
  const session = await service.wallet(payer.signer.publicKey())
  const hashes = new Set<unknown>()
  for (const amount of [1n, 2n, 4n, 8n]) {
    const transfer = { to: payee.signer.publicKey(), amount, opening }
    // A transaction that was built with the number of the lagging node is refused, and built again.
    const { built, body } = await insist(async () => {
      const signed = await buildTransfer(network, payer, transfer, { seconds: 120 })
      const response = await service.post({ session }, { signedXDR: signed.signedXdr })
      expect(response).toMatchObject({ status: 200, body: { status: 'SUCCESS' } })
      return { built: signed, body: response.body }
    })
    hashes.add(body.hash)
    opening = built.next
  }
  expect(hashes.size).toBe(4)
  await catchUp(network)
  const balance = await syncBalance(network, payee)
  expect(balance.receiving.value).toBe(15n)
})
