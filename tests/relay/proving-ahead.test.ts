import { eq } from 'drizzle-orm'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { batchItems, relayChannels } from '#drizzle/schema/relay.ts'
import { prover } from '#lib/devnet/devnet.ts'
import { ProverFault } from '#lib/prover/circuits.ts'
import { startRelay } from '#lib/server/relay.ts'
import { captureLog } from '../support/console.ts'
import type { Fault } from '../support/fault-proxy.ts'
import { openRelayService, type RelayService } from './relay-service.ts'
import { SHORT_TIMES } from './short-times.ts'

let fixture: RelayService
beforeAll(async () => {
  fixture = await openRelayService({ channels: 1 })
})
afterAll(() => fixture?.close())
afterEach(() => vi.restoreAllMocks())

test('where a proof ahead fails, an item follows all the same', async () => {
  let proofs = 0
  const prove: typeof prover.prove = async (statement) => {
    proofs += 1
    if (proofs === 2) throw new ProverFault('the prover failed: memory')
    return await prover.prove(statement)
  }
  const host = await startRelay(fixture.running, { prover: { ...prover, prove }, times: SHORT_TIMES })
  const arrival = Promise.withResolvers<void>()
  try {
    fixture.ledger.proxy.rule(async ({ method }): Promise<Fault> => {
      if (method === 'sendTransaction') await arrival.promise
      return 'pass'
    })
    const client = await fixture.client()
    const payee = await fixture.payee()
    await fixture.hire(client, [payee.signer.publicKey()])
    const { jobId } = (await fixture.post(client, { amounts: [4, 8] })).body as { jobId: string }
    await expect.poll(() => proofs).toBe(3)
    const items = await fixture.db.select().from(batchItems).where(eq(batchItems.job, jobId))
    expect(items.map(({ status }) => status).toSorted()).toEqual(['queued', 'signed'])
    arrival.resolve()
    expect(await fixture.ended(client, jobId)).toMatchObject({ status: 'completed' })
    expect(await fixture.received(payee)).toBe(12n)
    expect(proofs).toBe(3)
  } finally {
    arrival.resolve()
    await host.close()
  }
})

test('while an item waits for its ledger the next one is proved, and signed only after it', async () => {
  const lines = captureLog()
  let proofs = 0
  const prove: typeof prover.prove = async (statement) => {
    proofs += 1
    return await prover.prove(statement)
  }
  const host = await startRelay(fixture.running, { prover: { ...prover, prove }, times: SHORT_TIMES })
  try {
    // What is sent stays on its way until the test says so.
    const arrival = Promise.withResolvers<void>()
    fixture.ledger.proxy.rule(async ({ method }): Promise<Fault> => {
      if (method === 'sendTransaction') await arrival.promise
      return 'pass'
    })
    const client = await fixture.client()
    const payee = await fixture.payee()
    await fixture.hire(client, [payee.signer.publicKey()])
    const { jobId } = (await fixture.post(client, { amounts: [1, 2] })).body as { jobId: string }
    await expect.poll(() => proofs, { timeout: 120_000 }).toBe(2)
    const held = async () => (await fixture.db.select().from(relayChannels))[0]
    await expect.poll(held).toMatchObject({ itemJob: jobId, nextJob: jobId })
    // The messages of one job have no order: either item may be the first.
    const { itemPosition, nextPosition } = (await held()) ?? {}
    expect([itemPosition, nextPosition].toSorted()).toEqual([0, 1])
    const items = await fixture.db.select().from(batchItems).where(eq(batchItems.job, jobId))
    const stateAt = (at: number | null | undefined) => {
      const item = items.find(({ position }) => position === at)
      return [item?.status, item?.signedXdr != null]
    }
    expect([stateAt(itemPosition), stateAt(nextPosition)]).toEqual([
      ['signed', true],
      ['queued', false],
    ])
    arrival.resolve()
    expect(await fixture.ended(client, jobId)).toMatchObject({ status: 'completed' })
    expect(await fixture.received(payee)).toBe(3n)
    expect(proofs).toBe(2)
    const [channel] = await fixture.db.select().from(relayChannels)
    expect(channel).toMatchObject({ itemJob: null, nextJob: null })
    const told = lines.flatMap((line) => /"progress":"(proving \d of 2)"(,"left":"about \d+ s left")?/.exec(line) ?? [])
    expect(told.filter((part) => part?.startsWith('proving'))).toEqual(['proving 1 of 2', 'proving 2 of 2'])
    expect(told.at(-1)).toContain('s left')
  } finally {
    await host.close()
  }
})
