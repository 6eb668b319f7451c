import { Keypair, xdr } from '@stellar/stellar-sdk'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { enrol, sendAndWait } from '#lib/cli/client/participants.ts'
import { startInstance } from '../chaos/processes.ts'
import { findContradictions } from '../directory/bookkeeping.ts'
import { buildPayment, preparePayment } from '../directory/payment.ts'
import { type Fault, type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts'
import { openTestService, type TestService } from '../support/test-service.ts'
import { sendAnswer } from '../support/transfers.ts'
import { findDiscrepancies } from './quota-ledger.ts'

let service: TestService<'embedded'>
let second: FaultProxy
beforeAll(async () => {
  service = await openTestService({ ledger: 'embedded', variables: { TRANSFER_WAIT: '60' } })
  second = await startFaultProxy(service.ledger.devnet.rpcUrl)
})
afterAll(async () => {
  await second?.close()
  await service?.close()
})

/** The ledger key of an account, as requested from the RPC. */
function accountKey(address: string): string {
  const accountId = Keypair.fromPublicKey(address).xdrAccountId()
  return xdr.LedgerKey.account(new xdr.LedgerKeyAccount({ accountId })).toXdr('base64')
}

/** Asks the ledger itself, past the proxy. */
async function askLedger(method: string, params: Record<string, unknown>): Promise<Record<string, unknown>> {
  const response = await fetch(service.ledger.devnet.rpcUrl, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
  return ((await response.json()) as { result: Record<string, unknown> }).result
}

test('handles a rival that one process records between the other’s read of the account and its decision', async () => {
  const address = (await enrol(service.ledger.network)).signer.publicKey()
  const { wallet, hash, post, batch, now } = await preparePayment(service, address)
  let isDecided = false
  let rivalHash: string | undefined
  // This process records, and sees nothing on which it could base a decision.
  service.ledger.proxy.rule(({ method, params }): Fault => {
    if (method === 'sendTransaction') return { answer: sendAnswer('PENDING') }
    if (method !== 'getTransaction' || isDecided || params.hash === rivalHash) return 'pass'
    return { status: 500 }
  })
  const first = post()
  await expect.poll(async () => (await service.findTransfer(hash))?.envelope.firstSentAt).toBeInstanceOf(Date)
  const rival = await buildPayment(service, wallet, address, 6_0000000n)
  await sendAndWait(service.ledger.network, rival.signedXdr)

  // The other process has seen the number used, and NOT_FOUND for each hash of the first envelope.
  const key = accountKey(wallet.address)
  const looked = Promise.withResolvers<void>()
  const goOn = Promise.withResolvers<void>()
  let hasReadAccount = false
  second.rule(async ({ method, params }): Promise<Fault> => {
    if (method === 'getLedgerEntries' && (params.keys as string[]).includes(key)) hasReadAccount = true
    if (method !== 'getTransaction' || !hasReadAccount) return 'pass'
    const answer = await askLedger(method, params)
    looked.resolve()
    await goOn.promise
    return { answer }
  })
  const other = await startInstance(service.variables, second)
  await looked.promise

  rivalHash = rival.hash
  const answer = rival.post()
  await expect
    .poll(async () => (await service.findTransfer(rival.hash))?.id)
    .toBe((await service.findTransfer(hash))?.id)
  expect((await service.findTransfer(rival.hash))?.status).toBe('open')
  goOn.resolve()
  await expect.poll(async () => (await service.findTransfer(rival.hash))?.status).not.toBe('open')
  expect(await service.findTransfer(hash)).toMatchObject({
    status: 'succeeded',
    applied: rival.hash,
    payout: batch.payouts[0]?.id,
  })
  isDecided = true
  expect(await answer).toEqual({ status: 200, body: { hash: rival.hash, status: 'SUCCESS' } })
  expect(await first).toMatchObject({ status: 500, body: { code: 'transfer-replaced', hash: rival.hash } })
  expect(await now()).toMatchObject({ status: 'completed', payouts: [{ status: 'paid', txHash: rival.hash }] })
  expect(await findContradictions(service.db)).toEqual([])
  expect(await findDiscrepancies(service.db)).toEqual([])
  other.end()
})
