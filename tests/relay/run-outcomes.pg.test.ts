import { Keypair, TransactionBuilder } from '@stellar/stellar-sdk'
import { eq } from 'drizzle-orm'
import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { payouts as payoutRows } from '#drizzle/schema/directory.ts'
import { relayChannels } from '#drizzle/schema/relay.ts'
import { sendAndWait } from '#lib/cli/client/participants.ts'
import { hashSeal, signManifest } from '#lib/wallet/manifest.ts'
import { keypairSigner } from '#lib/wallet/signer.ts'
import { disposable } from '../support/disposable.ts'
import type { Fault } from '../support/fault-proxy.ts'
import { expectRunPaidOnce, quotaOf } from '../support/paid-once.ts'
import { expireHeartbeats, startMortalRelay } from './mortal-relay.ts'
import { openRelayService, type RelayService } from './relay-service.ts'
import { openRunFixture, type RunBatch, type RunFixture } from './run-fixture.ts'
import { SHORT_TIMES } from './short-times.ts'

let service: RelayService
let runs: RunFixture
beforeAll(async () => {
  service = await openRelayService({ channels: 2 })
  runs = openRunFixture(service)
  await using _relay = await service.relay()
  const areAnnounced = async () => (await service.db.query.relayChannels.findMany()).every((one) => one.runs)
  await vi.waitUntil(areAnnounced, { timeout: 300_000 })
})
afterAll(() => service?.close())
afterEach(() => service.ledger.proxy.rule(null))

const OFTEN = { ...SHORT_TIMES, lag: 0.2 }
const outcomes = async (batch: RunBatch) => (await runs.read(batch)).payouts.map(({ status, error }) => error ?? status)

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
  expect((await runs.itemsOf(batch)).map(({ channel }) => channel)).toEqual([...channels, ...channels])
})

test('lets two employers take turns on one channel', async () => {
  const employers = await Promise.all([runs.employer(), runs.employer()])
  const batches = []
  for (const employer of employers) {
    const batch = await runs.batchOf(employer, [1n, 2n, 4n])
    await runs.delegate(employer, 7n)
    expect(await runs.run(batch)).toMatchObject({ status: 200 })
    batches.push(batch)
  }
  await using _relay = await service.relay()
  for (const batch of batches) await expectRunPaidOnce(runs, batch, [1n, 2n, 4n])
  const items = (await Promise.all(batches.map(runs.itemsOf))).flat()
  const paid = items.toSorted((one, other) => (one.settledAt?.getTime() ?? 0) - (other.settledAt?.getTime() ?? 0))
  const [first, second] = [paid[0]?.quotaAccount, paid[1]?.quotaAccount]
  expect(second).not.toBe(first)
  expect(paid.map(({ quotaAccount }) => quotaAccount)).toEqual([first, second, first, second, first, second])
})

test('pays a payout once if the employer pays it at the same time', async () => {
  const employer = await runs.employer()
  const batch = await runs.batchOf(employer, [1n, 2n, 4n])
  const [first, , third] = batch.payouts
  await runs.delegate(employer, 7n)
  if (!first || !third) throw new Error('no payouts')
  await runs.run(batch)
  expect(await runs.pay(employer, first, 1n)).toMatchObject({ status: 200 })
  await using _relay = await service.relay()
  const late = await runs.pay(employer, third, 4n)
  await expectRunPaidOnce(runs, batch, [1n, 2n, 4n])
  const items = (await runs.itemsOf(batch)).map(({ status }) => status)
  expect(items.slice(0, 2)).toEqual(['skipped', 'paid'])
  expect(items[2]).toBe(late.status === 200 ? 'skipped' : 'paid')
  const [job] = await runs.jobsOf(batch)
  expect(job).toMatchObject({ status: 'completed', error: null })
})

test('skips a payout that is canceled while it is queued', async () => {
  const employer = await runs.employer()
  const batch = await runs.batchOf(employer, [1n, 2n])
  await runs.delegate(employer, 3n)
  await runs.run(batch)
  const [first] = batch.payouts
  if (!first) throw new Error('no payout')
  expect(await runs.cancel(batch, first)).toMatchObject({ status: 200 })
  await using _relay = await service.relay()
  expect(await runs.ended(batch)).toMatchObject({ status: 'completed', payoutCount: 1, settledCount: 1 })
  expect(await runs.itemsOf(batch)).toMatchObject([{ status: 'skipped', hash: null, error: null }, { status: 'paid' }])
  expect(await runs.received(batch)).toEqual([0n, 2n])
  // Only the payment counts against the quota, once the run has ended.
  expect(await quotaOf(service, employer.address)).toMatchObject({ count: 1, held: 0n })
})

/** A batch with one payout, which the employer has delegated and started. */
async function startedPayout() {
  const employer = await runs.employer()
  const batch = await runs.batchOf(employer, [1n])
  await runs.delegate(employer, 1n)
  const [payout] = batch.payouts
  if (!payout) throw new Error('no payout')
  await runs.run(batch)
  return { employer, batch, payout }
}

/** Keeps relays from recording a transfer that they have signed, until it is closed. */
async function holdRecords() {
  const holder = new Client({ connectionString: service.database.url })
  await holder.connect()
  await holder.query('BEGIN')
  await holder.query('LOCK TABLE transfers IN EXCLUSIVE MODE')
  return disposable({ close: () => holder.end() })
}

const isSigned = async (batch: RunBatch) => (await runs.itemsOf(batch))[0]?.status === 'signed'
const untilSigned = (batch: RunBatch) => vi.waitUntil(() => isSigned(batch), { timeout: 300_000 })

test('drops a signed envelope whose payout is canceled before it is recorded', async () => {
  const { employer, batch, payout } = await startedPayout()
  await using hold = await holdRecords()
  await using _relay = await service.relay()
  await untilSigned(batch)
  expect(await runs.cancel(batch, payout)).toMatchObject({ status: 200 })
  await hold.close()
  await runs.ended(batch)
  expect(await runs.itemsOf(batch)).toMatchObject([{ status: 'skipped', hash: null }])
  expect(await runs.received(batch)).toEqual([0n])
  expect(await quotaOf(service, employer.address)).toMatchObject({ count: 0, held: 0n })
})

test('records a payment that the ledger applied although its payout was canceled, as after a restore', async () => {
  const { batch, payout } = await startedPayout()
  // The first relay is killed between its signature and the record. The transaction reaches the ledger all the same.
  await using hold = await holdRecords()
  const killed = await startMortalRelay(service.variables)
  await untilSigned(batch).finally(killed.kill)
  await hold.close()
  await expireHeartbeats(service.db)
  const [signed] = await runs.itemsOf(batch)
  await sendAndWait(service.ledger.network, signed?.signedXdr ?? '')
  expect(await runs.cancel(batch, payout)).toMatchObject({ status: 200 })

  await using _relay = await service.relay()
  await runs.ended(batch)
  const [item] = await runs.itemsOf(batch)
  expect(item).toMatchObject({ status: 'paid' })
  expect(
    await service.db.query.transfers.findMany({ where: (row, { eq }) => eq(row.hash, item?.hash ?? '') }),
  ).toMatchObject([{ status: 'succeeded', kind: 'delegated', payout: null }])
  expect(await runs.received(batch)).toEqual([1n])
  // The relay may have noticed the transaction before it was recorded, and holds the channel then.
  await service.db
    .update(relayChannels)
    .set({ problem: null, movedAt: null, sequenceNumber: null })
    .where(eq(relayChannels.problem, 'moved'))
})

test('retries an unpaid payout whose claim was refused', async () => {
  const { employer, batch, payout } = await startedPayout()
  const setAddress = (address: string | undefined) =>
    service.db.update(payoutRows).set({ address }).where(eq(payoutRows.id, payout.id))
  // No claim fits for a moment, as while another transfer has the payout.
  await using hold = await holdRecords()
  await using _relay = await service.relay({ times: { ...SHORT_TIMES, lag: 2 } })
  await untilSigned(batch)
  await setAddress(employer.address)
  await hold.close()
  await vi.waitUntil(async () => (await runs.itemsOf(batch)).some((item) => item.doubtedLedger !== null), {
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
  const employer = await runs.employer()
  const batch = await runs.batchOf(employer, [1n, 2n, 4n])
  await runs.delegate(employer, 6n)
  await runs.run(batch)
  {
    await using _relay = await service.relay({ times: OFTEN })
    expect(await runs.ended(batch)).toMatchObject({ status: 'failed', failedCount: 3 })
  }
  expect(await outcomes(batch)).toEqual(['allowance-short', 'allowance-short', 'allowance-short'])
  expect(await runs.received(batch)).toEqual([0n, 0n, 0n])
  // With a larger escrow the same seals are paid.
  await runs.revoke(employer)
  await runs.delegate(employer, 7n)
  expect(await runs.run(batch)).toMatchObject({ status: 200 })
  await using _relay = await service.relay()
  await expectRunPaidOnce(runs, batch, [1n, 2n, 4n])
})

test('fails the remaining payouts when the delegation is revoked midway', async () => {
  const employer = await runs.employer()
  const batch = await runs.batchOf(employer, [1n, 2n])
  await runs.delegate(employer, 3n)
  await runs.run(batch)
  await using _relay = await service.relay({ times: OFTEN })
  await vi.waitUntil(async () => (await runs.itemsOf(batch)).some(({ status }) => status === 'paid'), {
    timeout: 300_000,
    interval: 10,
  })
  await runs.revoke(employer)
  await runs.ended(batch)
  // Either may be paid first, and the other one may still be faster than the revocation.
  const ends = await outcomes(batch)
  expect(ends).toContain('paid')
  expect(ends.filter((end) => end !== 'paid' && end !== 'delegation-revoked')).toEqual([])
  const amounts = [1n, 2n]
  expect(await runs.received(batch)).toEqual(amounts.map((amount, index) => (ends[index] === 'paid' ? amount : 0n)))
})

test('fails every payout of a delegation that is revoked before the first', async () => {
  const employer = await runs.employer()
  const batch = await runs.batchOf(employer, [1n, 2n])
  await runs.delegate(employer, 3n)
  await runs.run(batch)
  await runs.revoke(employer)
  await using _relay = await service.relay({ times: OFTEN })
  expect(await runs.ended(batch)).toMatchObject({ status: 'failed', failedCount: 2 })
  expect(await outcomes(batch)).toEqual(['delegation-revoked', 'delegation-revoked'])
  expect(await runs.received(batch)).toEqual([0n, 0n])
})

test('sends nothing that could outlive the delegation', async () => {
  const employer = await runs.employer()
  const batch = await runs.batchOf(employer, [1n])
  // Long enough to start a run, and too short for the lifetime of an envelope.
  await runs.delegate(employer, 1n, undefined, 60)
  expect(await runs.run(batch)).toMatchObject({ status: 200 })
  await using _relay = await service.relay({ times: OFTEN })
  expect(await runs.ended(batch)).toMatchObject({ status: 'failed' })
  expect(await outcomes(batch)).toEqual(['delegation-ended'])
  expect(await runs.received(batch)).toEqual([0n])
})

test('fails only the payout whose payee is not registered', async () => {
  const employer = await runs.employer()
  const batch = await runs.batchOf(employer, [1n, 2n])
  await runs.delegate(employer, 3n)
  const [first] = batch.payouts
  const nobody = Keypair.random().publicKey()
  await service.db
    .update(payoutRows)
    .set({ address: nobody })
    .where(eq(payoutRows.id, first?.id ?? ''))
  expect(await runs.run(batch)).toMatchObject({ status: 200 })
  await using _relay = await service.relay({ times: OFTEN })
  expect(await runs.ended(batch)).toMatchObject({ status: 'failed', settledCount: 1, failedCount: 1 })
  expect(await outcomes(batch)).toEqual(['recipient-unregistered', 'paid'])
})

test('fails a payout that the token refuses because an account is frozen', async () => {
  const employer = await runs.employer()
  const batch = await runs.batchOf(employer, [1n])
  await runs.delegate(employer, 1n)
  service.ledger.proxy.rule(({ method, params }): Fault => {
    if (method !== 'simulateTransaction') return 'pass'
    const isPayment =
      TransactionBuilder.fromXdr(String(params.transaction), runs.network.passphrase).toXdr().length > 10_000
    return isPayment ? { answer: { latestLedger: 1, error: 'HostError: Error(Contract, #3601)' } } : 'pass'
  })
  await runs.run(batch)
  await using _relay = await service.relay({ times: OFTEN })
  expect(await runs.ended(batch)).toMatchObject({ status: 'failed' })
  expect(await outcomes(batch)).toEqual(['account-frozen'])
})

test('is not started by the signature of a key that isn’t a signer of the account', async () => {
  const employer = await runs.employer()
  const batch = await runs.batchOf(employer, [1n])
  await runs.delegate(employer, 1n)
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
  const [payout] = other.payouts
  if (!payout) throw new Error('no payout')
  await runs.delegate(employer, 7n)
  await runs.run(batch)
  await using _relay = await service.relay()
  expect(await runs.pay(employer, payout, 8n)).toMatchObject({ status: 200 })
  await expectRunPaidOnce(runs, batch, [1n, 2n, 4n])
  expect(await runs.spendable(employer)).toBe(before - 15n)
})
