import { xdr } from '@stellar/stellar-sdk'
import { eq } from 'drizzle-orm'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { relayChannels } from '#drizzle/schema/relay.ts'
import { sendAndWait } from '#lib/cli/client/participants.ts'
import { submitOwnCall } from '#lib/relay/own-call.ts'
import { sequenceNumberOf } from '#lib/relay/sequence.ts'
import { buildMerge } from '#lib/wallet/calls.ts'
import type { Fault } from '../support/fault-proxy.ts'
import { shareService } from '../support/shared-service.ts'
import type { TestService } from '../support/test-service.ts'
import { sendAnswer } from '../support/transfers.ts'

let service: TestService<'embedded'>
beforeAll(async () => {
  service = await shareService('embedded')
})
afterAll(() => service?.close())
afterEach(() => service.ledger.proxy.rule(null))

const refusal = (result: xdr.TransactionResultResult) =>
  sendAnswer(
    'ERROR',
    new xdr.TransactionResult({ feeCharged: 0n, result, ext: xdr.TransactionResultExt.v0() }).toXdr('base64'),
  )

/** Submits a merge to a network whose queue is full, and which rejects the second attempt with this result. */
async function sendMerge(result: xdr.TransactionResultResult): Promise<unknown> {
  const payer = await service.ledger.endowPayer(0n)
  const merge = await buildMerge(service.ledger.network, payer.signer)
  service.ledger.proxy.rule(({ method, earlier }): Fault => {
    if (method !== 'sendTransaction') return 'pass'
    return { answer: earlier === 0 ? sendAnswer('TRY_AGAIN_LATER') : refusal(result) }
  })
  const { network, database } = service.running
  const token = service.ledger.network.token
  await service.db.insert(relayChannels).values({ token, address: payer.address, seenAt: new Date() })
  const relay = { network, database, token, signal: new AbortController().signal }
  return await submitOwnCall(relay, payer.address, merge).catch((error: unknown) => error)
}

test('reports a call that expired in the network’s queue as call-expired', async () => {
  const outcome = await sendMerge(xdr.TransactionResultResult.txTooLate())
  expect(outcome).toMatchObject({ code: 'call-expired' })
})

test('reports a call that the network rejects as call-failed', async () => {
  const outcome = await sendMerge(xdr.TransactionResultResult.txInsufficientBalance())
  expect(outcome).toMatchObject({
    code: 'call-failed',
    message: 'the network refused the call: txInsufficientBalance',
  })
})

test.each([
  ['gives up the number of a call that has expired', false],
  ['keeps the number of a call that has expired if another call has used it', true],
])('%s', async (_, isUsed) => {
  const { network, proxy, endowPayer } = service.ledger
  const payer = await endowPayer(0n)
  const [merge, other] = [
    await buildMerge(network, payer.signer, undefined, { seconds: 3 }),
    await buildMerge(network, payer.signer),
  ]
  if (isUsed) await sendAndWait(network, other.signedXdr)
  proxy.rule(({ method }) => (method === 'sendTransaction' ? { answer: sendAnswer('TRY_AGAIN_LATER') } : 'pass'))
  const { network: own, database } = service.running
  await service.db.insert(relayChannels).values({ token: network.token, address: payer.address, seenAt: new Date() })
  const relay = { network: own, database, token: network.token, signal: new AbortController().signal }
  await expect(submitOwnCall(relay, payer.address, merge)).rejects.toMatchObject({ code: 'call-expired' })
  const [channel] = await service.db.select().from(relayChannels).where(eq(relayChannels.address, payer.address))
  const number = sequenceNumberOf(merge.signedXdr, network.passphrase)
  expect(channel).toMatchObject({ sequenceNumber: number, ownCallSequence: isUsed ? number : number - 1n })
})
