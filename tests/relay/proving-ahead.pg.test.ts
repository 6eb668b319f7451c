import { eq } from 'drizzle-orm'
import { afterEach, expect, test, vi } from 'vitest'
import { envelopes, transfers } from '#drizzle/schema/transfers.ts'
import { sendAndWait } from '#lib/cli/client/participants.ts'
import { ProverError } from '#lib/prover/prover-error.ts'
import { prover } from '#lib/prover/stand-in.ts'
import { captureLog } from '../support/console.ts'
import { prepareOutsideMerge } from '../support/outside-merge.ts'
import { expectJobPaidOnce, expectRunPaidOnce } from '../support/paid-once.ts'
import { withhold } from '../support/transfers.ts'
import { watchProver } from './provers.ts'
import { serveJobs } from './relay-service.ts'
import { openRunFixture } from './run-fixture.ts'

const fixture = await serveJobs({ channels: 1 })
afterEach(() => {
  vi.restoreAllMocks()
})

/** What the lines of a job are doing, in alphabetical order. */
const statesOf = async (job: string) => (await fixture.linesOf(job)).map(({ state }) => state).toSorted()

test('pays a line whose early proof failed', async () => {
  let proofs = 0
  const prove: typeof prover.prove = async (statement) => {
    proofs += 1
    if (proofs === 2) throw new ProverError('failed', 'the prover failed: memory')
    return await prover.prove(statement)
  }
  const host = await fixture.relay({ prover: { ...prover, prove } })
  const sendAll = fixture.holdSends()
  try {
    const { client, payee, job: jobId } = await fixture.start(4, 8)
    await expect.poll(() => proofs).toBe(2)
    expect(await statesOf(jobId)).toEqual(['preparing', 'sent'])
    sendAll()
    await expectJobPaidOnce(fixture, client, jobId, [payee, 12n])
    expect(proofs).toBe(3)
  } finally {
    sendAll()
    await host.close()
  }
})

test('proves the next line ahead of time, and records its transfer only after the current one has ended', async () => {
  const lines = captureLog()
  const { prover, count } = watchProver()
  await using _host = await fixture.relay({ prover })
  const sendAll = fixture.holdSends()
  const { client, payee, job: jobId } = await fixture.start(1, 2, 4)
  await expect.poll(count).toBe(2)
  await expect.poll(() => statesOf(jobId)).toEqual(['preparing', 'sent', 'waiting'])
  // Longer than a lease: the host keeps the second line.
  await new Promise((resolve) => setTimeout(resolve, 3_000))
  expect(await statesOf(jobId)).toEqual(['preparing', 'sent', 'waiting'])
  expect(await fixture.db.$count(transfers, eq(transfers.lineJob, jobId))).toBe(1)
  sendAll()
  await expectJobPaidOnce(fixture, client, jobId, [payee, 7n])
  expect(count()).toBe(3)
  expect(await statesOf(jobId)).toEqual(['paid', 'paid', 'paid'])
  const told = lines.flatMap((line) => /"progress":"(proving \d of 3)"(,"left":"about \d+ s left")?/.exec(line) ?? [])
  const begun = ['proving 1 of 3', 'proving 2 of 3', 'proving 3 of 3']
  expect(told.filter((part) => part?.startsWith('proving'))).toEqual(begun)
  expect(told.at(-1)).toContain('s left')
})

/** Waits until the only open transfer has ended with this status. */
async function untilEnded(id: string | undefined, status: 'expired' | 'failed') {
  const read = () => fixture.db.query.transfers.findFirst({ where: (row, { eq }) => eq(row.id, id ?? '') })
  await expect.poll(async () => (await read())?.status).toBe(status)
}

const findOpen = () => fixture.db.query.transfers.findFirst({ where: (row, { eq }) => eq(row.status, 'open') })

/** Lets the open transfer expire, as if its time bounds had passed. */
async function expireOpen(): Promise<void> {
  const open = await findOpen()
  await fixture.db
    .update(envelopes)
    .set({ maxTime: 1 })
    .where(eq(envelopes.transfer, open?.id ?? ''))
  await untilEnded(open?.id, 'expired')
  fixture.ledger.proxy.rule(null)
}

/** Lets the open transfer fail on the ledger: its proof is stale when it arrives. */
async function failOpen(): Promise<void> {
  const open = await findOpen()
  const signer = fixture.channel(fixture.addressOf(0))
  await sendAndWait(fixture.ledger.network, await prepareOutsideMerge(fixture.ledger, signer))
  fixture.ledger.proxy.rule(null)
  await untilEnded(open?.id, 'failed')
}

test.each([
  ['expires', expireOpen],
  ['fails on the ledger', failOpen],
])('proves the next line anew if the open transfer %s while that is proved ahead', async (_, end) => {
  const { prover, begun, release, count } = watchProver({ from: 2 })
  await using _host = await fixture.relay({ prover })
  const { client, payee } = await fixture.engaged()
  fixture.ledger.proxy.rule(withhold)
  const jobId = await fixture.begin(client, 1, 2)
  await begun
  await end()
  release()
  await expectJobPaidOnce(fixture, client, jobId, [payee, 3n])
  // Of the first line, of the second one ahead and anew, of the first one again.
  expect(count()).toBe(4)
})

test('keeps the proof of another employer’s next line if the open transfer of a run expires', async () => {
  const runs = openRunFixture(fixture)
  const { prover, begun, release, count } = watchProver({ from: 2 })
  await using _host = await fixture.relay({ prover })
  await expect.poll(() => fixture.db.query.relayChannels.findMany()).toMatchObject([{ runs: true }])
  const employers = await Promise.all([runs.employer(), runs.employer()])
  const batches = await Promise.all(employers.map((employer, index) => runs.batchOf(employer, [BigInt(index + 1)])))
  for (const employer of employers) await runs.delegate(employer, 2n)
  fixture.ledger.proxy.rule(withhold)
  for (const batch of batches) expect(await runs.run(batch)).toMatchObject({ status: 200 })
  await begun
  await expireOpen()
  release()
  for (const [index, batch] of batches.entries()) await expectRunPaidOnce(runs, batch, [BigInt(index + 1)])
  expect(count()).toBe(3)
})
