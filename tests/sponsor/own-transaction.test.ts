import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { enrol, sendAndWait } from '#lib/cli/participants.ts'
import { buildTransfer } from '#lib/wallet/calls.ts'
import { findContradictions } from '../directory/bookkeeping.ts'
import type { Call, Fault } from '../support/fault-proxy.ts'
import { openTown, type Town } from '../support/town.ts'
import { next, notFound, prepareTransfer } from '../support/transfers.ts'
import { findDiscrepancies } from './quota-ledger.ts'

let town: Town
let payee: string
beforeAll(async () => {
  town = await openTown({ TRANSFER_WAIT: '15' })
  payee = (await enrol(town.network)).signer.publicKey()
})
afterAll(() => town?.close())
afterEach(async () => {
  town.proxy.rule(null)
  expect(await findContradictions(town.db)).toEqual([])
  expect(await findDiscrepancies(town.db)).toEqual([])
})

const failed = { status: 500, body: { error: 'transfer failed', code: 'unavailable' } }

/** A node that stands before the ledger that has the transaction, however often it is asked. */
const lagging = ({ method }: Call): Fault => (method === 'getTransaction' ? { rewrite: notFound } : 'pass')

describe('what a client has sent by itself is not denied by a node that lags', () => {
  test('more answers of such a node than are asked for in a row: asked again, and 200', async () => {
    const { signedXdr, hash, post } = await prepareTransfer(town, payee)
    await sendAndWait(town.network, signedXdr)
    town.proxy.rule(next('getTransaction', 7, { rewrite: notFound }))
    expect(await post()).toEqual({ status: 200, body: { hash, status: 'SUCCESS' } })
  })

  test('no other answer for as long as one is doubted: 500, and nothing is decided', async () => {
    const { signedXdr, hash, post } = await prepareTransfer(town, payee)
    await sendAndWait(town.network, signedXdr)
    town.proxy.rule(lagging)
    expect(await post()).toEqual(failed)
    expect(await town.row(hash)).toBeUndefined()
    town.proxy.rule(null)
    expect(await post()).toEqual({ status: 200, body: { hash, status: 'SUCCESS' } })
  })

  test('the time of the transaction is over: what refuses it is no ledger, and it is looked for all the same', async () => {
    const { signedXdr, hash, post, maxTime } = await prepareTransfer(town, payee, { seconds: 13 })
    await sendAndWait(town.network, signedXdr)
    await expect.poll(() => Date.now() / 1000).toBeGreaterThan(maxTime - 9)
    town.proxy.rule(next('getTransaction', 7, { rewrite: notFound }))
    expect(await post()).toEqual({ status: 200, body: { hash, status: 'SUCCESS' } })
  })

  test('an answer that calls a success a failure is no answer', async () => {
    const { signedXdr, hash, post } = await prepareTransfer(town, payee)
    await sendAndWait(town.network, signedXdr)
    const untrue = (found: Record<string, unknown>) => ({ ...found, status: 'FAILED' })
    town.proxy.rule(next('getTransaction', 1, { rewrite: untrue }))
    expect(await post()).toMatchObject({ status: 500 })
    expect(await post()).toEqual({ status: 200, body: { hash, status: 'SUCCESS' } })
  })

  test('what was never sent is refused at the first answer that is late enough', async () => {
    const { employer, post, hash } = await prepareTransfer(town, payee)
    const rival = await buildTransfer(town.network, employer, { to: payee, amount: 1n, opening: employer.opening })
    await sendAndWait(town.network, rival.signedXdr)
    expect(await post()).toMatchObject({ status: 422, body: { code: 'sequence' } })
    expect(await town.row(hash)).toBeUndefined()
  })
})
