import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { eq } from 'drizzle-orm'
import { describe, expect, test } from 'vitest'
import { batches as batchRows, identities, payouts as payoutRows } from '#drizzle/schema/directory.ts'
import { paymentStops, relayJobs, relayLines } from '#drizzle/schema/relay.ts'
import { transfers } from '#drizzle/schema/transfers.ts'
import { enrol } from '#lib/cli/client/participants.ts'
import { identityRow } from '#lib/cli/seed/rows.ts'
import { runChore } from '#lib/server/maintenance.ts'
import { formatManifest, type Manifest, signManifest } from '#lib/wallet/manifest.ts'
import { keypairSigner } from '#lib/wallet/signer.ts'
import { type RunBatch, runs, serveRuns, service } from './run-fixture.ts'
import { SHORT_TIMES } from './short-times.ts'

serveRuns()

/** A run that is queued while no relay runs. */
const queueRun = (amounts: readonly bigint[] = [1n, 2n]) => runs.begin(amounts, 9n)
type Queued = Awaited<ReturnType<typeof queueRun>>

const setLine = ({ payout }: Queued['line'], changes: Partial<typeof relayLines.$inferInsert>) =>
  service.db
    .update(relayLines)
    .set(changes)
    .where(eq(relayLines.payout, payout ?? ''))
const setPayout = ({ id }: { id: string }, changes: Partial<typeof payoutRows.$inferInsert>) =>
  service.db.update(payoutRows).set(changes).where(eq(payoutRows.id, id))
const setJob = ({ id }: { id: string }, changes: Partial<typeof relayJobs.$inferInsert>) =>
  service.db.update(relayJobs).set(changes).where(eq(relayJobs.id, id))

/** Runs a relay until the job has ended; resolves to what each line and payout has become. */
async function outcomeOf(batch: RunBatch) {
  await using _relay = await service.relay({ times: { ...SHORT_TIMES, lag: 0.2 } })
  const { payouts } = await runs.ended(batch)
  const lines = await runs.linesOf(batch)
  return {
    lines: lines.map(({ state, error }) => error ?? state),
    payouts: payouts.map(({ status, error }) => error ?? status),
    received: await runs.received(batch),
  }
}

describe('someone who can write to the database', () => {
  test('cannot redirect a payout to another address', async () => {
    const { batch, line, payout } = await queueRun()
    const thief = await enrol(runs.network)
    await setPayout(payout, { address: thief.address })
    await setLine(line, { recipient: thief.address })
    expect(await outcomeOf(batch)).toEqual({
      lines: ['manifest-invalid', 'paid'],
      payouts: ['ready', 'paid'],
      received: [0n, 2n],
    })
    expect(await service.received(thief)).toBe(0n)
  })

  test.each<[string, (queued: Queued) => Promise<unknown>]>([
    [
      'redirect a line while its payout keeps its address',
      ({ line, batch }) => setLine(line, { recipient: batch.payees[1]?.address ?? '' }),
    ],
    [
      'change an amount by another seal for the same payout',
      async ({ batch, ...queued }) => reseal(queued, await runs.seal(batch.id, queued.payout.contractorId, 7n)),
    ],
    [
      'move a seal from another payout or batch',
      async (queued) => {
        const other = await runs.batchOf(await runs.employer(), [8n])
        await reseal(queued, other.payouts[0]?.encryptedAmount ?? '')
      },
    ],
    [
      'have a line paid by another channel',
      async ({ employer, line }) => {
        const spender = service.channels[1]?.publicKey() ?? ''
        await runs.delegate(employer, 5n, spender)
        await setLine(line, { spender })
      },
    ],
  ])('cannot %s', async (_, change) => {
    const queued = await queueRun()
    await change(queued)
    expect(await outcomeOf(queued.batch)).toMatchObject({ lines: ['manifest-invalid', 'paid'], received: [0n, 2n] })
  })

  async function reseal({ line, payout }: Pick<Queued, 'line' | 'payout'>, encryptedAmount: string): Promise<void> {
    await setLine(line, { sealedAmount: encryptedAmount })
    await setPayout(payout, { encryptedAmount })
  }

  test('cannot add a payout', async () => {
    const { batch, line, payout, job } = await queueRun()
    const added = randomUUID()
    const thief = await enrol(runs.network)
    const [row] = await service.db.select().from(payoutRows).where(eq(payoutRows.id, payout.id))
    const { body: contractor } = await runs.ask<{ id: string }>(batch.employer, 'POST', '/contractors', {
      name: 'thief',
      address: thief.address,
    })
    if (!row) throw new Error('no payout')
    const sealed = await runs.seal(batch.id, contractor.id, 3n)
    const { sequence: _, ...columns } = row
    await service.db
      .insert(payoutRows)
      .values({ ...columns, id: added, contractor: contractor.id, address: thief.address, encryptedAmount: sealed })
    await service.db
      .insert(relayLines)
      .values({ ...line, job: job.id, position: 7, payout: added, recipient: thief.address, sealedAmount: sealed })
    expect(await outcomeOf(batch)).toMatchObject({ lines: ['paid', 'paid', 'manifest-invalid'], received: [1n, 2n] })
    expect(await service.received(thief)).toBe(0n)
  })

  test('cannot move a payout to another batch', async () => {
    const { batch, employer, payout } = await queueRun()
    const other = await runs.batchOf(employer, [1n])
    await setPayout(payout, { batch: other.id })
    const { lines, received } = await outcomeOf(batch)
    expect([lines, received]).toEqual([
      ['manifest-invalid', 'paid'],
      [0n, 2n],
    ])
    expect((await runs.read(other)).payouts.map(({ status }) => status)).toEqual(['ready', 'ready'])
  })

  test('cannot move a run to another batch', async () => {
    const { batch, employer, job } = await queueRun()
    const other = await runs.batchOf(employer, [1n])
    await setJob(job, { batch: other.id })
    await using _relay = await service.relay({ times: { ...SHORT_TIMES, lag: 0.2 } })
    await runs.ended(other)
    expect(await runs.received(batch)).toEqual([0n, 0n])
    expect((await runs.linesOf(other)).map(({ error }) => error)).toEqual(['manifest-invalid', 'manifest-invalid'])
    await setJob(job, { batch: batch.id })
  })

  const sign = async (given: RunBatch, by = given.employer, changes: Partial<Manifest> = {}) => {
    const manifest = { ...(await runs.manifestOf(given)), ...changes }
    const signature = await signManifest(keypairSigner(by.signer), manifest)
    return { manifest: formatManifest(manifest), signature }
  }

  test('cannot move a run to the thief’s own account, even with the thief’s signature', async () => {
    const { batch, line, job } = await queueRun()
    const thief = await runs.employer()
    const { address } = thief
    await setJob(job, { ...(await sign(batch, thief, { account: address })), userSub: address })
    await service.db.update(relayLines).set({ quotaAccount: address }).where(eq(relayLines.job, line.job))
    // The thief's own escrow would pay, and there is none.
    const lines = ['delegation-revoked', 'delegation-revoked']
    expect(await outcomeOf(batch)).toMatchObject({ lines, received: [0n, 0n] })
  })

  test('cannot replace the manifest with that of another batch, an earlier run or another account', async () => {
    const employer = await runs.employer()
    const other = await runs.batchOf(employer, [8n])
    const thief = await runs.employer()
    for (const replacement of [
      async () => await sign(other),
      async ({ batch }: Queued) => await sign(batch, thief),
      async ({ batch }: Queued) => await sign(batch, thief, { account: thief.address }),
      async ({ batch }: Queued) => {
        const { delegations } = await runs.manifestOf(batch)
        const earlier = delegations.map((one) => ({ ...one, liveUntilLedger: one.liveUntilLedger - 1 }))
        return await sign(batch, batch.employer, { delegations: earlier })
      },
    ]) {
      const queued = await queueRun()
      await setJob(queued.job, await replacement(queued))
      expect(await outcomeOf(queued.batch)).toEqual({
        lines: ['manifest-invalid', 'manifest-invalid'],
        payouts: ['ready', 'ready'],
        received: [0n, 0n],
      })
    }
  })

  test('gets a line that is queued twice paid only once', async () => {
    const { batch, line } = await queueRun()
    await service.db.insert(relayLines).values({ ...line, position: 7 })
    const { lines, received } = await outcomeOf(batch)
    expect(lines.toSorted()).toEqual(['canceled', 'paid', 'paid'])
    expect(received).toEqual([1n, 2n])
  })

  /** A run of one payout that is paid. */
  async function payRun(): Promise<Queued> {
    const queued = await queueRun([1n])
    expect(await outcomeOf(queued.batch)).toMatchObject({ lines: ['paid'], received: [1n] })
    return queued
  }

  /** Deletes the transfer and the lines of a paid run. */
  async function deleteRecords({ payout, job }: Queued): Promise<void> {
    await service.db.delete(transfers).where(eq(transfers.payout, payout.id))
    await service.db.delete(relayLines).where(eq(relayLines.job, job.id))
  }

  /** Sets the payout of a paid run to `ready`. */
  async function unpay({ batch, payout }: Queued): Promise<void> {
    const seal = { encryptedAmount: payout.encryptedAmount ?? null }
    await setPayout(payout, { status: 'ready', paidAt: null, txHash: null, transfer: null, ...seal })
    const unpaid = { settledCount: 0, status: 'ready', startedAt: null, completedAt: null } as const
    await service.db.update(batchRows).set(unpaid).where(eq(batchRows.id, batch.id))
  }

  /** Sets the payout of a paid run to `ready`, and queues its line again. */
  async function queueAgain(queued: Queued): Promise<void> {
    const { line, job } = queued
    await unpay(queued)
    await setJob(job, { status: 'running', endedAt: null })
    await service.db.insert(relayLines).values({ ...line, position: 7 })
  }

  test('cannot have a payout paid again by setting it to ready', async () => {
    const queued = await payRun()
    await queueAgain(queued)
    expect(await outcomeOf(queued.batch)).toMatchObject({ lines: ['paid', 'canceled'], received: [1n] })
  })

  /** Inserts the job of a run again, with its lines as they were queued. */
  async function insertAgain({ job, line }: Queued, id: string): Promise<void> {
    const { sequence: _, ...columns } = job
    await service.db.insert(relayJobs).values({ ...columns, id })
    await service.db.insert(relayLines).values({ ...line, job: id })
  }

  test.each([
    ['another line of the run', queueAgain, false],
    ['another line of the run, while the relay goes on', queueAgain, true],
    ['the run again', insertRunAgain, false],
    ['the run again, while the relay goes on', insertRunAgain, true],
  ])('cannot have a payout paid again by taking it from its transfer and inserting %s', async (_, insert, goesOn) => {
    const queued = await queueRun([1n])
    const { batch, payout } = queued
    await using first = await service.relay({ times: { ...SHORT_TIMES, lag: 0.2 } })
    await runs.ended(batch)
    expect(await runs.received(batch)).toEqual([1n])
    if (!goesOn) await first.close()
    await service.db.update(transfers).set({ payout: null }).where(eq(transfers.payout, payout.id))
    await insert(queued)
    if (goesOn) await runs.ended(batch)
    const { lines, received } = await outcomeOf(batch)
    expect(lines.toSorted()).toEqual(['canceled', 'paid'])
    expect(received).toEqual([1n])
  })

  async function insertRunAgain(queued: Queued): Promise<void> {
    await unpay(queued)
    await insertAgain(queued, randomUUID())
  }

  test('cannot have a payout paid again by resetting its line and taking it from its transfer', async () => {
    const queued = await payRun()
    const { batch, payout, line, job } = queued
    await service.db.update(transfers).set({ payout: null }).where(eq(transfers.payout, payout.id))
    await unpay(queued)
    const { outcome, settledAt, sealedAmount, hash, sentAt, due } = line
    await setLine(line, { outcome, settledAt, sealedAmount, hash, sentAt, due })
    await setJob(job, { status: 'running', endedAt: null })
    // The transfer still names the line: no host leases it.
    await using _relay = await service.relay({ times: { ...SHORT_TIMES, lag: 0.2 } })
    await setTimeout(5_000)
    expect(await runs.linesOf(batch)).toMatchObject([{ state: 'waiting' }])
    expect(await runs.received(batch)).toEqual([1n])
    await setJob(job, { status: 'completed', endedAt: new Date() })
  })

  test('cannot have a payout paid again by taking all links from its transfer and inserting its run anew', async () => {
    const queued = await payRun()
    const { batch, payout, job } = queued
    const none = { payout: null, lineJob: null, linePosition: null }
    await service.db.update(transfers).set(none).where(eq(transfers.payout, payout.id))
    await unpay(queued)
    await service.db.delete(relayLines).where(eq(relayLines.job, job.id))
    await service.db.delete(relayJobs).where(eq(relayJobs.id, job.id))
    await insertAgain(queued, job.id)
    // The relay finds the payment on the ledger, by its mark.
    expect(await outcomeOf(batch)).toEqual({ lines: ['canceled'], payouts: ['paid'], received: [1n] })
  })

  test('cannot have a payout paid again by deleting its records', async () => {
    const queued = await payRun()
    const { batch } = queued
    await deleteRecords(queued)
    await queueAgain(queued)
    // Nothing that is recorded has used the channel's last number: payments stop, and the relay looks at the ledger.
    const resumed = await service.beforeStop()
    await using _relay = await service.relay()
    expect(await resumed()).toEqual({ found: 1 })
    expect(await outcomeOf(batch)).toEqual({ lines: ['paid'], payouts: ['paid'], received: [1n] })
  })

  test('cannot have a payout paid again by deleting its records and raising the number of its channel', async () => {
    const queued = await payRun()
    const { batch } = queued
    await deleteRecords(queued)
    await queueAgain(queued)
    await service.adoptSequences()
    // Payments go on, but the relay finds the payment on the ledger before it pays.
    expect(await outcomeOf(batch)).toEqual({ lines: ['paid'], payouts: ['paid'], received: [1n] })
    expect(await service.stop()).toBeUndefined()
  })

  test('cannot have a payout paid again by another wallet of the organisation, even with the channel’s number raised', async () => {
    const queued = await payRun()
    const { batch, employer } = queued
    await deleteRecords(queued)
    await unpay(queued)
    await service.adoptSequences()
    const colleague = await runs.employer()
    await joinOrganisation(colleague, employer)
    await runs.delegate(colleague, 9n)
    const again = { ...batch, employer: colleague }
    expect(await runs.run(again)).toMatchObject({ status: 200 })
    expect(await outcomeOf(again)).toEqual({ lines: ['paid'], payouts: ['paid'], received: [1n] })
  })

  test('cannot have payments go on by ending their stop', async () => {
    const queued = await payRun()
    const { batch } = queued
    await deleteRecords(queued)
    await queueAgain(queued)
    await runChore(service.running, 'channels')
    expect(await service.stop()).toMatchObject({ found: 0 })
    await service.db.update(paymentStops).set({ since: null })
    // A host compares every channel with the ledger before its first payment.
    const resumed = await service.beforeStop()
    await using _relay = await service.relay()
    expect(await resumed()).toEqual({ found: 1 })
    expect(await outcomeOf(batch)).toEqual({ lines: ['paid'], payouts: ['paid'], received: [1n] })
  })
})

/** Makes a new wallet one of another wallet's organisation. */
async function joinOrganisation({ address: sub }: { address: string }, other: { address: string }): Promise<void> {
  const [joined] = await service.db.select().from(identities).where(eq(identities.sub, other.address))
  await service.db.insert(identities).values(identityRow({ sub, ...(joined && { organisation: joined.organisation }) }))
}

test('fails only the payout whose seal it cannot open, even if its employer has signed it', async () => {
  const employer = await runs.employer()
  const batch = await runs.batchOf(employer, [1n, 2n])
  const [first, second] = batch.payouts
  const [header = ''] = (first?.encryptedAmount ?? '').split('.')
  const [, ...rest] = (second?.encryptedAmount ?? '').split('.')
  const seals = [{ payoutId: first?.id, encryptedAmount: [header, ...rest].join('.') }]
  expect((await runs.ask(employer, 'POST', `/batches/${batch.id}/seals`, { seals })).status).toBe(200)
  await runs.delegate(employer, 9n)
  expect(await runs.run(batch)).toMatchObject({ status: 200 })
  expect(await outcomeOf(batch)).toEqual({
    lines: ['seal-invalid', 'paid'],
    payouts: ['seal-invalid', 'paid'],
    received: [0n, 2n],
  })
})
