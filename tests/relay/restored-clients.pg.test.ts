import { and, eq, sql } from 'drizzle-orm'
import { expect, test } from 'vitest'
import { relayLines } from '#drizzle/schema/relay.ts'
import { envelopes, transfers } from '#drizzle/schema/transfers.ts'
import { sendAndWait } from '#lib/cli/client/participants.ts'
import { resumePayments } from '#lib/relay/resume.ts'
import { expectRunPaidOnce, quotaOf } from '../support/paid-once.ts'
import { withhold } from '../support/transfers.ts'
import {
  backups,
  fixture,
  moveOther,
  openRestoredRuns,
  query,
  readProblems,
  restoreRun,
  runs,
  statusesOf,
  stopEarly,
} from './restored-run.ts'
import { OFTEN } from './short-times.ts'

openRestoredRuns()

test.each([
  ['starts it again', false],
  ['has delegated anew since the backup, and starts it again', true],
])('ends an unfinished run once payments were found, and its employer %s', async (_, isNewDelegation) => {
  const employer = await runs.employer()
  const batch = await runs.batchOf(employer, [4n, 8n, 16n])
  const last = eq(relayLines.payout, batch.payouts[2]?.id ?? '')
  await runs.delegate(employer, 28n)
  await runs.run(batch)
  const restore = await backups.backUp()
  await fixture.db.update(relayLines).set({ due: sql`now() + interval '1 hour'` }).where(last)
  {
    await using _host = await fixture.relay()
    await expect.poll(() => statusesOf(batch)).toEqual(['paid', 'paid', 'ready'])
  }
  if (isNewDelegation) {
    await runs.revoke(employer)
    await runs.delegate(employer, 16n)
  }
  const resumed = await restore()
  await using _host = await fixture.relay()
  expect(await resumed()).toEqual({ found: 2 })
  const code = 'restored'
  const ended = await runs.read(batch)
  expect(ended).toMatchObject({ status: 'started', settledCount: 2, run: { status: 'failed', code } })
  expect(ended.run?.error).toMatch(/start the run again/)
  expect(await runs.ask(employer, 'GET', `/batches/${batch.id}/status`)).toMatchObject({ body: { run: ended.run } })
  expect(await statusesOf(batch)).toEqual(['paid', 'paid', 'ready'])
  expect(await runs.linesOf(batch)).toMatchObject([
    { outcome: 'paid' },
    { outcome: 'paid' },
    { outcome: 'canceled', error: 'restored', sealedAmount: null },
  ])
  expect(await quotaOf(fixture, employer.address)).toMatchObject({ count: 2, held: 0n })
  expect(await runs.run(batch)).toMatchObject({ status: 200 })
  await expectRunPaidOnce(runs, batch, [4n, 8n, 16n])
  expect((await runs.read(batch)).run).toEqual({ status: 'completed' })
})

/** As an RPC that keeps no ledgers from before now, beside an archive that is empty. */
async function loseHistory(): Promise<void> {
  const { sequence } = await fixture.ledger.network.rpc.getLatestLedger()
  await query('TRUNCATE archive_streams, archive_ranges, archive_events CASCADE')
  fixture.ledger.proxy.rule(({ method }) =>
    method === 'getHealth' ? { rewrite: (health) => ({ ...health, oldestLedger: sequence }) } : 'pass',
  )
}

test('asks the employers about every older payout if an operator goes on without history', async () => {
  const { batch, employer, older, next, resumed } = await restoreRun('within the run')
  await loseHistory()
  await using _host = await fixture.relay()
  await expect.poll(readProblems).toEqual(['history-gap', 'history-gap'])
  expect(await resumePayments(fixture.operator(), { note: 'no history' })).toBe('resumed')
  expect(await resumed()).toMatchObject({ found: 0, note: 'no history', unreconciled: expect.any(Number) })
  const suspended = { status: 'pending', error: 'restored-without-history' }
  for (const each of [batch, older, next]) {
    const { payouts } = await runs.read(each)
    expect(payouts).toMatchObject(payouts.map(() => suspended))
  }
  expect(await runs.read(batch)).toMatchObject({ run: { status: 'failed', code: 'restored' } })
  fixture.ledger.proxy.rule(null)
  // The employer cancels all of them, and instructs those again that were not paid.
  for (const each of [batch, older]) {
    for (const payout of each.payouts) expect(await runs.cancel(each, payout)).toMatchObject({ status: 200 })
  }
  const again = await runs.batchOf(employer, [16n], { like: older })
  await runs.revoke(employer)
  await runs.delegate(employer, 16n)
  expect(await runs.run(again)).toMatchObject({ status: 200 })
  expect(await runs.ended(again)).toMatchObject({ status: 'completed' })
  expect(await runs.received(batch)).toEqual([20n, 8n])
})

test('settles a payment from before the restore that is applied after an operator let payments go on without history', async () => {
  const { employer, batch } = await runs.begin([4n, 8n])
  const restore = await backups.backUp()
  const payout = batch.payouts[0]?.id ?? ''
  const findEnvelope = async () =>
    await fixture.db
      .select({ signed: envelopes.signed, payout: transfers.payout })
      .from(envelopes)
      .innerJoin(transfers, eq(transfers.id, envelopes.transfer))
      .where(and(eq(transfers.status, 'open'), eq(transfers.owner, employer.address)))
  fixture.ledger.proxy.rule(withhold)
  {
    await using _host = await fixture.relay()
    await expect.poll(findEnvelope).toMatchObject([{ payout }])
  }
  const [inFlight] = await findEnvelope()
  const resumed = await restore()
  await moveOther()
  await loseHistory()
  await using _host = await fixture.relay()
  await expect.poll(readProblems).toEqual(['history-gap', 'history-gap'])
  expect(await resumePayments(fixture.operator(), { note: 'in a hurry' })).toBe('resumed')
  await resumed()
  expect(await statusesOf(batch)).toEqual(['restored-without-history', 'restored-without-history'])
  fixture.ledger.proxy.rule(null)
  const resumedAgain = await fixture.beforeStop()
  await sendAndWait(fixture.ledger.network, inFlight?.signed ?? '')
  expect(await resumedAgain()).toEqual({ found: 1 })
  expect(await statusesOf(batch)).toEqual(['paid', 'restored-without-history'])
  expect(await runs.received(batch)).toEqual([4n, 0n])
})

test('refuses a client’s payment of an older payout while payments are stopped, until they go on', async () => {
  const employer = await runs.employer()
  const batch = await runs.batchOf(employer, [4n])
  const { first: payout } = batch
  const resumed = await fixture.beforeStop()
  await moveOther()
  await stopEarly()
  const refused = await runs.pay(employer, payout, 4n)
  expect(refused).toMatchObject({ status: 422, body: { code: 'reconciling' } })
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  // One that was instructed since cannot have been paid before.
  const newer = await runs.batchOf(employer, [8n])
  const { first: newPayout } = newer
  expect(await runs.pay(employer, newPayout, 8n)).toMatchObject({ status: 200 })
  await using _host = await fixture.relay()
  expect(await resumed()).toEqual({ found: 0 })
  expect(await runs.pay(employer, payout, 4n)).toMatchObject({ status: 200 })
  expect([await statusesOf(batch), await statusesOf(newer)]).toEqual([['paid'], ['paid']])
})

test('refuses a client’s payment of a payout that was paid since the backup, during the stop and after it', async () => {
  const { batch, employer, resumed } = await restoreRun('before the run')
  await stopEarly()
  const { first: payout } = batch
  expect(await runs.pay(employer, payout, 4n)).toMatchObject({ status: 422, body: { code: 'reconciling' } })
  await using _host = await fixture.relay()
  expect(await resumed()).toEqual({ found: 2 })
  expect(await runs.pay(employer, payout, 4n)).toMatchObject({ status: 422, body: { code: 'payout' } })
  expect(await runs.received(batch)).toEqual([4n, 8n])
})

test('leaves a payout to its employer whose client has paid it since the backup, and settles it when that posts its transaction', async () => {
  const employer = await runs.employer()
  const batch = await runs.batchOf(employer, [4n, 8n])
  const { first: payout } = batch
  const restore = await backups.backUp()
  // The times of ledgers are whole seconds.
  await fixture.pass(6)
  const signed = await runs.signPayment(employer, payout, 4n)
  const post = () =>
    fixture.ask('POST', '/transfer', {
      session: employer.session,
      body: { signedXDR: signed.signedXdr, payoutId: payout.id },
    })
  const paid = await post()
  expect(paid).toMatchObject({ status: 200 })
  await restore()
  await runs.delegate(employer, 12n)
  expect(await runs.run(batch)).toMatchObject({ status: 200 })
  await using _host = await fixture.relay({ times: OFTEN })
  await runs.ended(batch)
  expect(await statusesOf(batch)).toEqual(['employer-paid', 'paid'])
  expect(await post()).toMatchObject({ status: 200, body: paid.body })
  expect(await statusesOf(batch)).toEqual(['paid', 'paid'])
  expect(await runs.received(batch)).toEqual([4n, 8n])
})
