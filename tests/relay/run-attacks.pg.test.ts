import { randomUUID } from 'node:crypto'
import { eq } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { batches as batchRows, identities, payouts as payoutRows } from '#drizzle/schema/directory.ts'
import { batchItems, batchJobs, type ChannelProblem } from '#drizzle/schema/relay.ts'
import { transfers } from '#drizzle/schema/transfers.ts'
import { enrol } from '#lib/cli/client/participants.ts'
import { identityRow } from '#lib/cli/seed/rows.ts'
import { releaseMoved } from '#lib/relay/moved.ts'
import { composeRelay } from '#lib/server/relay.ts'
import { formatManifest, type Manifest, signManifest } from '#lib/wallet/manifest.ts'
import { keypairSigner } from '#lib/wallet/signer.ts'
import { openRelayService, type RelayService } from './relay-service.ts'
import { openRunFixture, type RunBatch, type RunFixture } from './run-fixture.ts'
import { SHORT_TIMES } from './short-times.ts'

let service: RelayService
let runs: RunFixture
beforeAll(async () => {
  service = await openRelayService({ channels: 2 })
  runs = openRunFixture(service)
  // Announces the channels.
  await using _relay = await service.relay()
  const areAnnounced = async () => (await service.db.query.relayChannels.findMany()).every((one) => one.runs)
  await vi.waitUntil(areAnnounced, { timeout: 300_000 })
})
afterAll(() => service?.close())

/** A run that is queued while no relay runs, with the first payout and its item. */
async function queueRun(amounts: readonly bigint[] = [1n, 2n], escrow = 9n) {
  const employer = await runs.employer()
  const batch = await runs.batchOf(employer, amounts)
  await runs.delegate(employer, escrow)
  expect(await runs.run(batch)).toMatchObject({ status: 200 })
  const [item] = await runs.itemsOf(batch)
  const [payout] = batch.payouts
  const [job] = await runs.jobsOf(batch)
  if (!item || !payout || !job) throw new Error('no run was queued')
  return { employer, batch, item, payout, job }
}
type Queued = Awaited<ReturnType<typeof queueRun>>

const setItem = (
  of: { job: string; position: number },
  changes: Partial<typeof batchItems.$inferInsert>,
  first = true,
) =>
  service.db
    .update(batchItems)
    .set(changes)
    .where(first ? eq(batchItems.payout, String((of as Queued['item']).payout)) : eq(batchItems.job, of.job))
const setPayout = ({ id }: { id: string }, changes: Partial<typeof payoutRows.$inferInsert>) =>
  service.db.update(payoutRows).set(changes).where(eq(payoutRows.id, id))
const setJob = ({ id }: { id: string }, changes: Partial<typeof batchJobs.$inferInsert>) =>
  service.db.update(batchJobs).set(changes).where(eq(batchJobs.id, id))

/** Runs a relay until the job has ended; resolves to what each item and payout has become. */
async function outcomeOf(batch: RunBatch) {
  await using _relay = await service.relay({ times: { ...SHORT_TIMES, lag: 0.2 } })
  const { payouts } = await runs.ended(batch)
  const items = await runs.itemsOf(batch)
  return {
    items: items.map(({ status, error }) => error ?? status),
    payouts: payouts.map(({ status, error }) => error ?? status),
    received: await runs.received(batch),
  }
}

describe('someone who can write to the database', () => {
  test('cannot redirect a payout to another address', async () => {
    const { batch, item, payout } = await queueRun()
    const thief = await enrol(runs.network)
    await setPayout(payout, { address: thief.address })
    await setItem(item, { recipient: thief.address })
    expect(await outcomeOf(batch)).toEqual({
      items: ['manifest-invalid', 'paid'],
      payouts: ['ready', 'paid'],
      received: [0n, 2n],
    })
    expect(await service.received(thief)).toBe(0n)
  })

  test('cannot redirect an item while its payout keeps its address', async () => {
    const { batch, item } = await queueRun()
    await setItem(item, { recipient: batch.payees[1]?.address ?? '' })
    expect(await outcomeOf(batch)).toMatchObject({ items: ['manifest-invalid', 'paid'], received: [0n, 2n] })
  })

  test('cannot change an amount by another seal for the same payout', async () => {
    const { batch, item, payout } = await queueRun()
    const sealed = await runs.seal(batch.id, payout.contractorId, 7n)
    await setItem(item, { sealedAmount: sealed })
    await setPayout(payout, { encryptedAmount: sealed })
    expect(await outcomeOf(batch)).toMatchObject({ items: ['manifest-invalid', 'paid'], received: [0n, 2n] })
  })

  test('cannot move a seal from another payout or batch', async () => {
    const employer = await runs.employer()
    const other = await runs.batchOf(employer, [8n])
    const { batch, item, payout } = await queueRun()
    const encryptedAmount = other.payouts[0]?.encryptedAmount ?? ''
    await setItem(item, { sealedAmount: encryptedAmount })
    await setPayout(payout, { encryptedAmount })
    expect(await outcomeOf(batch)).toMatchObject({ items: ['manifest-invalid', 'paid'], received: [0n, 2n] })
  })

  test('cannot have an item paid by another channel', async () => {
    const { batch, employer, item } = await queueRun()
    const other = service.channels[1]?.publicKey() ?? ''
    await runs.delegate(employer, 5n, other)
    await setItem(item, { spender: other })
    expect(await outcomeOf(batch)).toMatchObject({ items: ['manifest-invalid', 'paid'], received: [0n, 2n] })
  })

  test('cannot add a payout', async () => {
    const { batch, item, payout, job } = await queueRun()
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
    await service.db.insert(payoutRows).values({
      ...columns,
      id: added,
      contractor: contractor.id,
      address: thief.address,
      encryptedAmount: sealed,
    })
    await service.db.insert(batchItems).values({
      ...item,
      job: job.id,
      position: 7,
      payout: added,
      recipient: thief.address,
      sealedAmount: sealed,
    })
    expect(await outcomeOf(batch)).toMatchObject({ items: ['paid', 'paid', 'manifest-invalid'], received: [1n, 2n] })
    expect(await service.received(thief)).toBe(0n)
  })

  test('cannot move a payout to another batch', async () => {
    const { batch, employer, payout } = await queueRun()
    const other = await runs.batchOf(employer, [1n])
    await setPayout(payout, { batch: other.id })
    const { items, received } = await outcomeOf(batch)
    expect([items, received]).toEqual([
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
    expect((await runs.itemsOf(other)).map(({ error }) => error)).toEqual(['manifest-invalid', 'manifest-invalid'])
    await setJob(job, { batch: batch.id })
  })

  const sign = async (given: RunBatch, by = given.employer, changes: Partial<Manifest> = {}) => {
    const manifest = { ...(await runs.manifestOf(given)), ...changes }
    const signature = await signManifest(keypairSigner(by.signer), manifest)
    return { manifest: formatManifest(manifest), signature }
  }

  test('cannot move a run to the thief’s own account, even with the thief’s signature', async () => {
    const { batch, item, job } = await queueRun()
    const thief = await runs.employer()
    const { address } = thief
    await setJob(job, { ...(await sign(batch, thief, { account: address })), userSub: address })
    await setItem(item, { quotaAccount: address }, false)
    // The thief's own escrow would pay, and there is none.
    const items = ['delegation-revoked', 'delegation-revoked']
    expect(await outcomeOf(batch)).toMatchObject({ items, received: [0n, 0n] })
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
        items: ['manifest-invalid', 'manifest-invalid'],
        payouts: ['ready', 'ready'],
        received: [0n, 0n],
      })
    }
  })

  test('gets an item that is queued twice paid only once', async () => {
    const { batch, item } = await queueRun()
    await service.db.insert(batchItems).values({ ...item, position: 7 })
    const { items, received } = await outcomeOf(batch)
    expect(items.toSorted()).toEqual(['paid', 'paid', 'skipped'])
    expect(received).toEqual([1n, 2n])
  })

  /** Sets the payout of a paid run to `ready`. */
  async function unpay({ batch, payout }: Queued): Promise<void> {
    const seal = { encryptedAmount: payout.encryptedAmount ?? null }
    await setPayout(payout, { status: 'ready', paidAt: null, txHash: null, transfer: null, ...seal })
    const unpaid = { settledCount: 0, status: 'ready', startedAt: null, completedAt: null } as const
    await service.db.update(batchRows).set(unpaid).where(eq(batchRows.id, batch.id))
  }

  /** Sets the payout of a paid run to `ready`, and queues its item again. */
  async function queueAgain(queued: Queued): Promise<void> {
    const { item, job } = queued
    await unpay(queued)
    await setJob(job, { status: 'running', endedAt: null })
    await service.db.insert(batchItems).values({ ...item, position: 7 })
    await service.running.batch?.queue.send(service.db, [{ job: job.id, position: 7 }])
  }

  test('cannot have a payout paid again by setting it to ready', async () => {
    const queued = await queueRun([1n], 9n)
    expect(await outcomeOf(queued.batch)).toMatchObject({ items: ['paid'], received: [1n] })
    await queueAgain(queued)
    expect(await outcomeOf(queued.batch)).toMatchObject({ items: ['paid', 'skipped'], received: [1n] })
  })

  test.each([
    ['verified', false],
    ['unverified', true],
  ])('cannot have a payout paid again by deleting its records, even after a %s release', async (_, isUnverified) => {
    const queued = await queueRun([1n], 9n)
    const { batch, payout, job } = queued
    expect(await outcomeOf(batch)).toMatchObject({ items: ['paid'], received: [1n] })
    await service.db.delete(transfers).where(eq(transfers.payout, payout.id))
    await service.db.delete(batchItems).where(eq(batchItems.job, job.id))
    await queueAgain(queued)
    // Nothing that is recorded has used the channel's last number.
    await relayUntil('moved')
    const count = isUnverified ? 0 : 1
    const relay = await composeRelay(service.running)
    const released = await releaseMoved(relay, { address: runs.channel, isUnverified })
    expect(released).toEqual({ recorded: count, settled: count })
    await relayUntil(null)
    // After an unverified release, the relay finds the payment on the ledger before it pays.
    expect(await outcomeOf(batch)).toEqual({ items: ['paid'], payouts: ['paid'], received: [1n] })
  })

  test('cannot have a payout paid again by another wallet of the organisation, after an unverified release', async () => {
    const queued = await queueRun([1n], 9n)
    const { batch, employer, payout, job } = queued
    expect(await outcomeOf(batch)).toMatchObject({ items: ['paid'], received: [1n] })
    await service.db.delete(transfers).where(eq(transfers.payout, payout.id))
    await service.db.delete(batchItems).where(eq(batchItems.job, job.id))
    await unpay(queued)
    await relayUntil('moved')
    const relay = await composeRelay(service.running)
    await releaseMoved(relay, { address: runs.channel, isUnverified: true })
    await relayUntil(null)
    const colleague = await runs.employer()
    await joinOrganisation(colleague, employer)
    await runs.delegate(colleague, 9n)
    const again = { ...batch, employer: colleague }
    expect(await runs.run(again)).toMatchObject({ status: 200 })
    expect(await outcomeOf(again)).toEqual({ items: ['paid'], payouts: ['paid'], received: [1n] })
  })
})

/** Makes a new wallet one of another wallet's organisation. */
async function joinOrganisation({ address: sub }: { address: string }, other: { address: string }): Promise<void> {
  const [joined] = await service.db.select().from(identities).where(eq(identities.sub, other.address))
  await service.db.insert(identities).values(identityRow({ sub, organisation: joined?.organisation ?? null }))
}

/** Runs a relay until the channel has this problem. */
async function relayUntil(problem: ChannelProblem | null): Promise<void> {
  await using _relay = await service.relay({ times: { ...SHORT_TIMES, lag: 0.2 } })
  const read = () =>
    service.db.query.relayChannels.findFirst({ where: (channel, { eq }) => eq(channel.address, runs.channel) })
  await vi.waitUntil(async () => (await read())?.problem === problem, { timeout: 300_000 })
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
    items: ['seal-invalid', 'paid'],
    payouts: ['seal-invalid', 'paid'],
    received: [0n, 2n],
  })
})
