import { eq } from 'drizzle-orm'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { batchItems, relayChannels } from '#drizzle/schema/relay.ts'
import { ProverError } from '#lib/prover/prover-error.ts'
import { prover } from '#lib/prover/stand-in.ts'
import { captureLog } from '../support/console.ts'
import type { Fault } from '../support/fault-proxy.ts'
import { expectJobPaidOnce } from '../support/paid-once.ts'
import { openRelayService, type RelayService } from './relay-service.ts'

let fixture: RelayService
beforeAll(async () => {
  fixture = await openRelayService({ channels: 1 })
})
afterAll(() => fixture?.close())
afterEach(() => vi.restoreAllMocks())

test('pays an item whose early proof failed', async () => {
  let proofs = 0
  const prove: typeof prover.prove = async (statement) => {
    proofs += 1
    if (proofs === 2) throw new ProverError('failed', 'the prover failed: memory')
    return await prover.prove(statement)
  }
  const host = await fixture.relay({ prover: { ...prover, prove } })
  const arrival = Promise.withResolvers<void>()
  try {
    fixture.ledger.proxy.rule(async ({ method }): Promise<Fault> => {
      if (method === 'sendTransaction') await arrival.promise
      return 'pass'
    })
    const { client, payee } = await fixture.engaged()
    const jobId = await fixture.begin(client, 4, 8)
    await expect.poll(() => proofs).toBe(3)
    const items = await fixture.db.select().from(batchItems).where(eq(batchItems.job, jobId))
    expect(items.map(({ status }) => status).toSorted()).toEqual(['queued', 'signed'])
    arrival.resolve()
    await expectJobPaidOnce(fixture, client, jobId, [payee, 12n])
    expect(proofs).toBe(3)
  } finally {
    arrival.resolve()
    await host.close()
  }
})

test('proves the next item ahead of time, and signs it only after the current one has ended', async () => {
  const lines = captureLog()
  let proofs = 0
  const prove: typeof prover.prove = async (statement) => {
    proofs += 1
    return await prover.prove(statement)
  }
  await using _host = await fixture.relay({ prover: { ...prover, prove } })
  // A submitted transfer is delayed until the test releases it.
  const arrival = Promise.withResolvers<void>()
  fixture.ledger.proxy.rule(async ({ method }): Promise<Fault> => {
    if (method === 'sendTransaction') await arrival.promise
    return 'pass'
  })
  const { client, payee } = await fixture.engaged()
  const jobId = await fixture.begin(client, 1, 2)
  await expect.poll(() => proofs).toBe(2)
  const held = async () => (await fixture.db.select().from(relayChannels))[0]
  await expect.poll(held).toMatchObject({ itemJob: jobId, nextJob: jobId })
  // The messages of a job are unordered: either item may be first.
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
  await expectJobPaidOnce(fixture, client, jobId, [payee, 3n])
  expect(proofs).toBe(2)
  const [channel] = await fixture.db.select().from(relayChannels)
  expect(channel).toMatchObject({ itemJob: null, nextJob: null })
  const told = lines.flatMap((line) => /"progress":"(proving \d of 2)"(,"left":"about \d+ s left")?/.exec(line) ?? [])
  expect(told.filter((part) => part?.startsWith('proving'))).toEqual(['proving 1 of 2', 'proving 2 of 2'])
  expect(told.at(-1)).toContain('s left')
})
