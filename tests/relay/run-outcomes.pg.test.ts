import { setTimeout } from 'node:timers/promises'
import { Keypair, TransactionBuilder } from '@stellar/stellar-sdk'
import { eq, sql } from 'drizzle-orm'
import { Client } from 'pg'
import { expect, test, vi } from 'vitest'
import { batches as batchRows, payouts as payoutRows } from '#drizzle/schema/directory.ts'
import { relayChannels, relayJobs, relayLines } from '#drizzle/schema/relay.ts'
import { transfers } from '#drizzle/schema/transfers.ts'
import { LINE_ERRORS } from '#lib/transfers/line-error.ts'
import { hashSeal, signManifest } from '#lib/wallet/manifest.ts'
import { keypairSigner } from '#lib/wallet/signer.ts'
import { disposable } from '../support/disposable.ts'
import type { Fault } from '../support/fault-proxy.ts'
import { expectRunPaidOnce, quotaOf } from '../support/paid-once.ts'
import { type RunBatch, runs, serveRuns, service } from './run-fixture.ts'
import { OFTEN, SHORT_TIMES } from './short-times.ts'

serveRuns()

const endsOf = async (batch: RunBatch) => (await runs.read(batch)).payouts.map(({ status, error }) => error ?? status)

test('pays through several channels, including one without a balance', async () => {
  const channels = service.channels.map((channel) => channel.publicKey())
  const employer = await runs.employer()
  const batch = await runs.batchOf(employer, [1n, 2n, 4n, 8n], { channels })
  for (const [index, amount] of [5n, 10n].entries()) await runs.delegate(employer, amount, channels[index])
  await service.db
    .update(relayChannels)
    .set({ problem: 'balance' })
    .where(eq(relayChannels.address, channels[0] ?? ''))
  expect(await runs.run(batch)).toMatchObject({ status: 200 })
  await using _relay = await service.relay()
  await expectRunPaidOnce(runs, batch, [1n, 2n, 4n, 8n])
  expect((await runs.linesOf(batch)).map(({ channel }) => channel)).toEqual([...channels, ...channels])
})

test('lets two employers take turns on one channel', async () => {
  const batches = [(await runs.begin([1n, 2n, 4n])).batch, (await runs.begin([1n, 2n, 4n])).batch]
  await using _relay = await service.relay()
  for (const batch of batches) await expectRunPaidOnce(runs, batch, [1n, 2n, 4n])
  const lines = (await Promise.all(batches.map(runs.linesOf))).flat()
  const paid = lines.toSorted((one, other) => (one.settledAt?.getTime() ?? 0) - (other.settledAt?.getTime() ?? 0))
  const [first, second] = [paid[0]?.quotaAccount, paid[1]?.quotaAccount]
  expect(second).not.toBe(first)
  expect(paid.map(({ quotaAccount }) => quotaAccount)).toEqual([first, second, first, second, first, second])
})

test('pays a payout once if the employer pays it at the same time', async () => {
  const { employer, batch, payout: first } = await runs.begin([1n, 2n, 4n])
  const [, , third = first] = batch.payouts
  expect(await runs.pay(employer, first, 1n)).toMatchObject({ status: 200 })
  await using _relay = await service.relay()
  const late = await runs.pay(employer, third, 4n)
  await expectRunPaidOnce(runs, batch, [1n, 2n, 4n])
  const outcomes = (await runs.linesOf(batch)).map(({ outcome }) => outcome)
  expect(outcomes.slice(0, 2)).toEqual(['canceled', 'paid'])
  expect(outcomes[2]).toBe(late.status === 200 ? 'canceled' : 'paid')
  const [job] = await runs.jobsOf(batch)
  expect(job).toMatchObject({ status: 'completed', error: null })
})

test('skips a payout that is canceled while it is queued', async () => {
  const { employer, batch, payout: first } = await runs.begin([1n, 2n])
  expect(await runs.cancel(batch, first)).toMatchObject({ status: 200 })
  await using _relay = await service.relay()
  expect(await runs.ended(batch)).toMatchObject({ status: 'completed', payoutCount: 1, settledCount: 1 })
  expect(await runs.linesOf(batch)).toMatchObject([
    { outcome: 'canceled', hash: null, error: null },
    { outcome: 'paid' },
  ])
  expect(await runs.received(batch)).toEqual([0n, 2n])
  // Only the payment counts against the quota, once the run has ended.
  expect(await quotaOf(service, employer.address)).toMatchObject({ count: 1, held: 0n })
})

/** Keeps relays from recording a transfer that they have signed, until it is closed. */
async function holdRecords() {
  const holder = new Client({ connectionString: service.database.url })
  await holder.connect()
  await holder.query('BEGIN')
  await holder.query('LOCK TABLE transfers IN EXCLUSIVE MODE')
  const isSigned = async () => {
    const waiting = sql`SELECT FROM pg_locks WHERE relation = 'transfers'::regclass AND NOT granted`
    return ((await service.db.execute(waiting)) as unknown as { rows: unknown[] }).rows.length > 0
  }
  return disposable({
    close: () => holder.end(),
    /** Resolves once a relay is about to record a transfer. */
    untilSigned: () => vi.waitUntil(isSigned, { timeout: 300_000, interval: 10 }),
  })
}

test('drops a signed payment whose payout is canceled before it is recorded', async () => {
  const { employer, batch, payout } = await runs.begin([1n])
  await using hold = await holdRecords()
  await using _relay = await service.relay()
  await hold.untilSigned()
  expect(await runs.cancel(batch, payout)).toMatchObject({ status: 200 })
  await hold.close()
  await runs.ended(batch)
  expect(await runs.linesOf(batch)).toMatchObject([{ outcome: 'canceled', hash: null }])
  expect(await runs.received(batch)).toEqual([0n])
  expect(await quotaOf(service, employer.address)).toMatchObject({ count: 0, held: 0n })
})

test('records a payment that the ledger applied although its payout was canceled, as after a restore', async () => {
  const { employer, batch, payout, line: queued, job } = await runs.begin([1n])
  const row = await service.db.query.payouts.findFirst({ where: eq(payoutRows.id, payout.id) })
  if (!row) throw new Error('there is no payout')
  {
    await using _relay = await service.relay()
    await expectRunPaidOnce(runs, batch, [1n])
  }
  const [paid] = await runs.linesOf(batch)
  // Everything is as before the payment, but for the number of the channel.
  const { status, txHash, paidAt, transfer, error, encryptedAmount } = row
  const { sealedAmount } = queued
  await service.db.delete(transfers).where(eq(transfers.payout, payout.id))
  const unpaid = { status, txHash, paidAt, transfer, error, encryptedAmount }
  await service.db.update(payoutRows).set(unpaid).where(eq(payoutRows.id, payout.id))
  const counts = { settledCount: 0, status: 'ready', startedAt: null, completedAt: null } as const
  await service.db.update(batchRows).set(counts).where(eq(batchRows.id, batch.id))
  const open = { outcome: null, settledAt: null, hash: null, sentAt: null, sealedAmount }
  await service.db.update(relayLines).set(open).where(eq(relayLines.job, job.id))
  await service.db.update(relayJobs).set({ status: 'running', endedAt: null }).where(eq(relayJobs.id, job.id))
  await service.adoptSequences()
  expect(await runs.cancel(batch, payout)).toMatchObject({ status: 200 })

  await using _relay = await service.relay()
  await runs.ended(batch)
  expect(await runs.linesOf(batch)).toMatchObject([{ outcome: 'paid', hash: paid?.hash }])
  const recorded = await service.db.query.transfers.findMany({ where: (row, { eq }) => eq(row.hash, paid?.hash ?? '') })
  expect(recorded).toMatchObject([{ status: 'succeeded', kind: 'delegated', owner: employer.address, payout: null }])
  expect((await runs.read(batch)).payouts).toMatchObject([{ status: 'canceled', txHash: paid?.hash }])
  expect(await runs.received(batch)).toEqual([1n])
})

test('retries an unpaid payout whose claim was refused', async () => {
  const { employer, batch, payout } = await runs.begin([1n])
  const setAddress = (address: string | undefined) =>
    service.db.update(payoutRows).set({ address }).where(eq(payoutRows.id, payout.id))
  // No claim fits for a moment, as while another transfer has the payout.
  await using hold = await holdRecords()
  await using _relay = await service.relay({ times: { ...SHORT_TIMES, lag: 2 } })
  await hold.untilSigned()
  await setAddress(employer.address)
  await hold.close()
  await vi.waitUntil(async () => (await runs.linesOf(batch)).some((line) => line.doubtedLedger !== null), {
    timeout: 300_000,
    interval: 20,
  })
  await setAddress(payout.address)
  await expectRunPaidOnce(runs, batch, [1n])
})

test('starts one of two runs on the same channel that are started at once', async () => {
  const employer = await runs.employer()
  const batches = [await runs.batchOf(employer, [1n]), await runs.batchOf(employer, [2n])]
  await runs.delegate(employer, 3n)
  const answers = await Promise.all(batches.map((batch) => runs.run<unknown>(batch)))
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409])
  expect(answers.find(({ status }) => status === 409)?.body).toMatchObject({
    errors: [{ channel: runs.channel, reason: 'channel-busy' }],
  })
  await using _relay = await service.relay()
  await Promise.all(batches.map(runs.ended))
})

test('fails every payout of a channel whose escrow covers only some', async () => {
  const { employer, batch } = await runs.begin([1n, 2n, 4n], 6n)
  {
    await using _relay = await service.relay({ times: OFTEN })
    expect(await runs.ended(batch)).toMatchObject({ status: 'failed', failedCount: 3 })
  }
  expect(await endsOf(batch)).toEqual(['allowance-short', 'allowance-short', 'allowance-short'])
  expect(await runs.received(batch)).toEqual([0n, 0n, 0n])
  // With a larger escrow the same seals are paid.
  await runs.revoke(employer)
  await runs.delegate(employer, 7n)
  expect(await runs.run(batch)).toMatchObject({ status: 200 })
  await using _relay = await service.relay()
  await expectRunPaidOnce(runs, batch, [1n, 2n, 4n])
})

test('fails the remaining payouts when the delegation is revoked midway', async () => {
  const { employer, batch } = await runs.begin([1n, 2n])
  await using _relay = await service.relay({ times: OFTEN })
  await vi.waitUntil(async () => (await runs.linesOf(batch)).some(({ outcome }) => outcome === 'paid'), {
    timeout: 300_000,
    interval: 10,
  })
  await runs.revoke(employer)
  await runs.ended(batch)
  // Either may be paid first, and the other one may still be faster than the revocation.
  const ends = await endsOf(batch)
  expect(ends).toContain('paid')
  expect(ends.filter((end) => end !== 'paid' && end !== 'delegation-revoked')).toEqual([])
  const amounts = [1n, 2n]
  expect(await runs.received(batch)).toEqual(amounts.map((amount, index) => (ends[index] === 'paid' ? amount : 0n)))
})

test('fails every payout of a delegation that is revoked before the first', async () => {
  const { employer, batch } = await runs.begin([1n, 2n])
  await runs.revoke(employer)
  await using _relay = await service.relay({ times: OFTEN })
  expect(await runs.ended(batch)).toMatchObject({ status: 'failed', failedCount: 2 })
  expect(await endsOf(batch)).toEqual(['delegation-revoked', 'delegation-revoked'])
  expect(await runs.received(batch)).toEqual([0n, 0n])
})

test('sends nothing that could outlive the delegation', async () => {
  const employer = await runs.employer()
  const batch = await runs.batchOf(employer, [1n])
  // Long enough to start a run, and too short for the lifetime of an envelope.
  await runs.delegate(employer, 1n, undefined, 600)
  expect(await runs.run(batch)).toMatchObject({ status: 200 })
  await using _relay = await service.relay({ times: OFTEN })
  expect(await runs.ended(batch)).toMatchObject({ status: 'failed' })
  expect(await endsOf(batch)).toEqual(['delegation-ended'])
  expect(await runs.received(batch)).toEqual([0n])
})

test('fails only the payout whose payee is not registered', async () => {
  const { batch, payout } = await runs.delegated([1n, 2n])
  const nobody = Keypair.random().publicKey()
  await service.db.update(payoutRows).set({ address: nobody }).where(eq(payoutRows.id, payout.id))
  expect(await runs.run(batch)).toMatchObject({ status: 200 })
  await using _relay = await service.relay({ times: OFTEN })
  expect(await runs.ended(batch)).toMatchObject({ status: 'failed', settledCount: 1, failedCount: 1 })
  expect(await endsOf(batch)).toEqual(['recipient-unregistered', 'paid'])
})

test('fails a payout that the token refuses because an account is frozen', async () => {
  const { batch } = await runs.delegated([1n])
  service.ledger.proxy.rule(({ method, params }): Fault => {
    if (method !== 'simulateTransaction') return 'pass'
    const isPayment =
      TransactionBuilder.fromXdr(String(params.transaction), runs.network.passphrase).toXdr().length > 10_000
    return isPayment ? { answer: { latestLedger: 1, error: 'HostError: Error(Contract, #3601)' } } : 'pass'
  })
  await runs.run(batch)
  await using _relay = await service.relay({ times: OFTEN })
  expect(await runs.ended(batch)).toMatchObject({ status: 'failed' })
  expect(await endsOf(batch)).toEqual(['account-frozen'])
})

test('is not started by the signature of a key that isn’t a signer of the account', async () => {
  const { employer, batch } = await runs.delegated([1n])
  const manifest = await runs.manifestOf(batch)
  const stranger = Keypair.random()
  const signature = await signManifest(keypairSigner(stranger), manifest)
  expect(await runs.ask(employer, 'POST', `/batches/${batch.id}/run`, { signature })).toMatchObject({
    status: 409,
    body: { errors: [{ reason: 'manifest' }] },
  })
  expect(hashSeal(batch.payouts[0]?.encryptedAmount ?? '')).toBe(manifest.payouts[0]?.sealHash)
})

test('lets its employer merge and pay others in the meantime', async () => {
  const employer = await runs.employer()
  const before = await runs.spendable(employer)
  const [batch, other] = [await runs.batchOf(employer, [1n, 2n, 4n]), await runs.batchOf(employer, [8n])]
  const { first: payout } = other
  await runs.delegate(employer, 7n)
  await runs.run(batch)
  await using _relay = await service.relay()
  expect(await runs.pay(employer, payout, 8n)).toMatchObject({ status: 200 })
  await expectRunPaidOnce(runs, batch, [1n, 2n, 4n])
  expect(await runs.spendable(employer)).toBe(before - 15n)
})

/** Waits for the next second: the times of ledgers are whole seconds. */
const nextSecond = () => setTimeout(1_100)

test('fails a payout whose payee the employer has paid without the service since the batch was created', async () => {
  const { employer, batch, payout } = await runs.delegated([1n, 2n])
  await nextSecond()
  await runs.payDirectly(employer, payout, 1n)
  await runs.untilArchived()
  await runs.run(batch)
  await using _relay = await service.relay({ times: OFTEN })
  expect(await runs.ended(batch)).toMatchObject({
    status: 'failed',
    run: { status: 'failed', error: `transfer 0: ${LINE_ERRORS['employer-paid']}` },
  })
  expect(await endsOf(batch)).toEqual(['employer-paid', 'paid'])
  expect(await runs.received(batch)).toEqual([1n, 2n])
  // The employer who signs a new run knows of that payment: a bonus, perhaps.
  expect(await runs.run(batch)).toMatchObject({ status: 200 })
  expect(await runs.ended(batch)).toMatchObject({ status: 'completed', run: { status: 'completed' } })
  expect(await runs.received(batch)).toEqual([2n, 2n])
})

test('fails a payout again after another payment without the service', async () => {
  const { employer, batch, payout } = await runs.delegated([1n])
  await using _relay = await service.relay({ times: OFTEN })
  for (const count of [1n, 2n]) {
    await nextSecond()
    await runs.payDirectly(employer, payout, 4n)
    await runs.untilArchived()
    expect(await runs.run(batch)).toMatchObject({ status: 200 })
    await runs.ended(batch)
    expect(await endsOf(batch)).toEqual(['employer-paid'])
    expect(await runs.received(batch)).toEqual([4n * count])
  }
})

test('pays a payee whom the employer has paid before the batch was created, or through the service', async () => {
  const employer = await runs.employer()
  const earlier = await runs.batchOf(employer, [1n])
  const { first: payout } = earlier
  await runs.payDirectly(employer, payout, 2n)
  await nextSecond()
  const batch = await runs.batchOf(employer, [4n], { like: earlier })
  await nextSecond()
  expect(await runs.pay(employer, payout, 1n)).toMatchObject({ status: 200 })
  await runs.untilArchived()
  await runs.delegate(employer, 4n)
  await runs.run(batch)
  await using _relay = await service.relay({ times: OFTEN })
  expect(await runs.ended(batch)).toMatchObject({ status: 'completed', settledCount: 1 })
  expect(await runs.received(batch)).toEqual([7n])
})
