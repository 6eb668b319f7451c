import { eq } from 'drizzle-orm'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { relayLines } from '#drizzle/schema/relay.ts'
import { transfers } from '#drizzle/schema/transfers.ts'
import { ProverError } from '#lib/prover/prover-error.ts'
import { prover } from '#lib/prover/stand-in.ts'
import { captureLog } from '../support/console.ts'
import type { Fault } from '../support/fault-proxy.ts'
import { readLines } from '../support/lines.ts'
import { expectJobPaidOnce } from '../support/paid-once.ts'
import { openRelayService, type RelayService } from './relay-service.ts'

let fixture: RelayService
beforeAll(async () => {
  fixture = await openRelayService({ channels: 1 })
})
afterAll(() => fixture?.close())
afterEach(() => vi.restoreAllMocks())

/** What the lines of a job are doing, in alphabetical order. */
const statesOf = async (job: string) =>
  (await readLines(fixture.db, eq(relayLines.job, job))).map(({ state }) => state).toSorted()

test('pays a line whose early proof failed', async () => {
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
    await expect.poll(() => proofs).toBe(2)
    expect(await statesOf(jobId)).toEqual(['preparing', 'sent'])
    arrival.resolve()
    await expectJobPaidOnce(fixture, client, jobId, [payee, 12n])
    expect(proofs).toBe(3)
  } finally {
    arrival.resolve()
    await host.close()
  }
})

test('proves the next line ahead of time, and records its transfer only after the current one has ended', async () => {
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
  const jobId = await fixture.begin(client, 1, 2, 4)
  await expect.poll(() => proofs).toBe(2)
  await expect.poll(() => statesOf(jobId)).toEqual(['preparing', 'sent', 'waiting'])
  // Longer than a lease: the host keeps the second line.
  await new Promise((resolve) => setTimeout(resolve, 3_000))
  expect(await statesOf(jobId)).toEqual(['preparing', 'sent', 'waiting'])
  expect(await fixture.db.$count(transfers, eq(transfers.lineJob, jobId))).toBe(1)
  arrival.resolve()
  await expectJobPaidOnce(fixture, client, jobId, [payee, 7n])
  expect(proofs).toBe(3)
  expect(await statesOf(jobId)).toEqual(['paid', 'paid', 'paid'])
  const told = lines.flatMap((line) => /"progress":"(proving \d of 3)"(,"left":"about \d+ s left")?/.exec(line) ?? [])
  const begun = ['proving 1 of 3', 'proving 2 of 3', 'proving 3 of 3']
  expect(told.filter((part) => part?.startsWith('proving'))).toEqual(begun)
  expect(told.at(-1)).toContain('s left')
})
