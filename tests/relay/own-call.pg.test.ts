import { xdr } from '@stellar/stellar-sdk'
import { eq } from 'drizzle-orm'
import { afterAll, afterEach, expect, test } from 'vitest'
import { relayChannels } from '#drizzle/schema/relay.ts'
import { sendAndWait } from '#lib/cli/client/participants.ts'
import { submitOwnCall } from '#lib/relay/own-call.ts'
import { findOpenTransfer } from '#lib/transfers/rows.ts'
import { openTracker } from '#lib/transfers/track.ts'
import { buildMerge } from '#lib/wallet/calls.ts'
import type { Call, Fault } from '../support/fault-proxy.ts'
import { shareService } from '../support/shared-service.ts'
import type { Payer } from '../support/test-ledger.ts'
import { next, sendAnswer } from '../support/transfers.ts'

const service = await shareService('embedded')
afterAll(service.close)
afterEach(() => service.ledger.proxy.rule(null))

const refusal = (result: xdr.TransactionResultResult) => {
  const { v0 } = xdr.TransactionResultExt
  return sendAnswer('ERROR', new xdr.TransactionResult({ feeCharged: 0n, result, ext: v0() }).toXdr('base64'))
}

const fullQueue = ({ method }: Call): Fault =>
  method === 'sendTransaction' ? { answer: sendAnswer('TRY_AGAIN_LATER') } : 'pass'

/** A channel that is registered, and the merge that it has signed. */
async function signMerge({ seconds = 60 } = {}) {
  const { network } = service.ledger
  const payer = await service.ledger.endowPayer(0n)
  await service.db.insert(relayChannels).values({ token: network.token, address: payer.address, seenAt: new Date() })
  const { sequence: ledger } = await network.rpc.getLatestLedger()
  const signed = await buildMerge(network, payer.signer, undefined, { seconds })
  return { payer, call: { kind: 'merge' as const, signed, ledger } }
}

const contextOf = (signal = new AbortController().signal) => {
  const { network, database, tracker } = service.running
  return { network, database, token: service.ledger.network.token, signal, sponsor: { tracker } }
}

const transfersOf = async ({ address }: Payer) =>
  (await service.db.query.transfers.findMany({ where: (row, { eq }) => eq(row.account, address) })).map(
    ({ kind, status, sponsor }) => ({ kind, status, sponsor }),
  )

test('records a call as a transfer without a sponsor, and resolves once it is applied', async () => {
  const { payer, call } = await signMerge()
  await submitOwnCall(contextOf(), payer.address, call)
  expect(await transfersOf(payer)).toEqual([{ kind: 'merge', status: 'succeeded', sponsor: null }])
})

test('sends the call again while the queue of the network is full', async () => {
  const { payer, call } = await signMerge()
  service.ledger.proxy.rule(next('sendTransaction', 2, { answer: sendAnswer('TRY_AGAIN_LATER') }))
  await submitOwnCall(contextOf(), payer.address, call)
  expect(await transfersOf(payer)).toMatchObject([{ status: 'succeeded' }])
})

test('reports a call that the network rejects as call-failed, and follows it all the same', async () => {
  const { payer, call } = await signMerge()
  const answer = refusal(xdr.TransactionResultResult.txInsufficientBalance())
  service.ledger.proxy.rule(next('sendTransaction', 1, { answer }))
  const message = 'the network refused the call: txInsufficientBalance'
  await expect(submitOwnCall(contextOf(), payer.address, call)).rejects.toMatchObject({ code: 'call-failed', message })
  await expect.poll(async () => (await transfersOf(payer)).map(({ status }) => status)).toEqual(['succeeded'])
})

test('reports a call that no ledger had room for as call-expired', async () => {
  const { payer, call } = await signMerge({ seconds: 3 })
  service.ledger.proxy.rule(fullQueue)
  await expect(submitOwnCall(contextOf(), payer.address, call)).rejects.toMatchObject({ code: 'call-expired' })
  expect(await transfersOf(payer)).toMatchObject([{ status: 'expired' }])
})

test('reports a call whose number another transaction has used as call-expired', async () => {
  const { payer, call } = await signMerge()
  const other = await buildMerge(service.ledger.network, payer.signer, undefined, { seconds: 50 })
  await sendAndWait(service.ledger.network, other.signedXdr)
  await expect(submitOwnCall(contextOf(), payer.address, call)).rejects.toMatchObject({ code: 'call-expired' })
})

test('another process sends and settles the call of one that died before it was sent', async () => {
  const { payer, call } = await signMerge()
  const { network, database } = service.running
  // A process that loses its RPC, and then its life.
  const silent = { ...network, call: () => new Promise<never>(() => undefined) }
  const dead = {
    ...contextOf(),
    sponsor: { tracker: openTracker({ network: silent, database, now: () => new Date() }) },
  }
  void submitOwnCall(dead, payer.address, call)
  await expect.poll(() => findOpenTransfer(service.db, payer.address)).toBeDefined()
  const open = await findOpenTransfer(service.db, payer.address)
  const [outcome] = await service.running.tracker.track([open?.id ?? ''], { waitMs: 60_000 })
  expect(outcome).toMatchObject({ kind: 'settled', transfer: { status: 'succeeded' } })
})

test('records no call of a channel that has moved', async () => {
  const { payer, call } = await signMerge()
  const isThis = eq(relayChannels.address, payer.address)
  await service.db.update(relayChannels).set({ adoptedSequence: 1n }).where(isThis)
  await expect(submitOwnCall(contextOf(), payer.address, call)).rejects.toMatchObject({ code: 'channel-moved' })
  expect(await transfersOf(payer)).toEqual([])
  await service.db.delete(relayChannels).where(isThis)
})

test('signs nothing more for a channel whose earlier transfer is open', async () => {
  const { payer, call } = await signMerge()
  const stop = new AbortController()
  service.ledger.proxy.rule(fullQueue)
  const first = submitOwnCall(contextOf(stop.signal), payer.address, call)
  await expect.poll(() => findOpenTransfer(service.db, payer.address)).toBeDefined()
  const other = await buildMerge(service.ledger.network, payer.signer, undefined, { seconds: 50 })
  const second = submitOwnCall(contextOf(), payer.address, { ...call, kind: 'register' as const, signed: other })
  await expect(second).rejects.toMatchObject({ code: 'call-failed' })
  stop.abort()
  await expect(first).rejects.toMatchObject({ code: 'relay-closing' })
  service.ledger.proxy.rule(null)
  await expect.poll(async () => (await transfersOf(payer)).map(({ status }) => status)).toEqual(['succeeded'])
})
