import { xdr } from '@stellar/stellar-sdk'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { submitOwnCall } from '#lib/relay/own-call.ts'
import { buildMerge } from '#lib/wallet/calls.ts'
import type { Fault } from '../support/fault-proxy.ts'
import { openTestService, type TestService } from '../support/test-service.ts'
import { sendAnswer } from '../support/transfers.ts'

let service: TestService<'embedded'>
beforeAll(async () => {
  service = await openTestService({ ledger: 'embedded' })
})
afterAll(() => service?.close())
afterEach(() => service.ledger.proxy.rule(null))

const refusal = (result: xdr.TransactionResultResult) =>
  sendAnswer(
    'ERROR',
    new xdr.TransactionResult({ feeCharged: 0n, result, ext: xdr.TransactionResultExt.v0() }).toXdr('base64'),
  )

/** Sends a merge to a network that has no room for it, and refuses it like this when it comes again. */
async function sendMerge(result: xdr.TransactionResultResult): Promise<unknown> {
  const payer = await service.ledger.endowPayer(0n)
  const merge = await buildMerge(service.ledger.network, payer.signer)
  service.ledger.proxy.rule(({ method, earlier }): Fault => {
    if (method !== 'sendTransaction') return 'pass'
    return { answer: earlier === 0 ? sendAnswer('TRY_AGAIN_LATER') : refusal(result) }
  })
  return await submitOwnCall(service.running.network, merge, new AbortController().signal).catch(
    (error: unknown) => error,
  )
}

test('a call whose time runs out in the queue is no failure: another one may be taken', async () => {
  const outcome = await sendMerge(xdr.TransactionResultResult.txTooLate())
  expect(outcome).toMatchObject({ code: 'unavailable', message: 'the call expired' })
})

test('a call that the network refuses for what it says has failed', async () => {
  const outcome = await sendMerge(xdr.TransactionResultResult.txInsufficientBalance())
  expect(outcome).toMatchObject({ code: 'failed', message: 'the network refused the call: txInsufficientBalance' })
})
