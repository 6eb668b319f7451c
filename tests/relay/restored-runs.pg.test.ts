import { and, eq, isNull } from 'drizzle-orm'
import { expect, test } from 'vitest'
import { identities } from '#drizzle/schema/directory.ts'
import { relayChannels, relayLines } from '#drizzle/schema/relay.ts'
import { transfers } from '#drizzle/schema/transfers.ts'
import { identityRow, insertRows, transferRow } from '#lib/cli/seed/rows.ts'
import { readAttention } from '#lib/dashboard/overview.ts'
import { searchRecords } from '#lib/dashboard/search.ts'
import { resumePayments } from '#lib/relay/resume.ts'
import { readLines } from '../support/lines.ts'
import { expectRunPaidOnce } from '../support/paid-once.ts'
import type { SignedInPayer } from '../support/test-service.ts'
import {
  asPaid,
  backups,
  endsOf,
  fixture,
  openRestoredRuns,
  otherChannel,
  problemOf,
  query,
  restoreRun,
  runs,
  statusesOf,
  stopEarly,
} from './restored-run.ts'
import { OFTEN } from './short-times.ts'

openRestoredRuns()

test.each(['within the run', 'before the run', 'before the seals'] as const)(
  'settles the payouts of a run that are unpaid in a backup from %s, and pays none of them again',
  async (moment) => {
    const { batch, paid, older, resumed } = await restoreRun(moment)
    await using _host = await fixture.relay()
    expect(await resumed()).toEqual({ found: 2 })
    // The payments are recorded for their payouts, also where the restored database lacks the run.
    expect(endsOf(await runs.read(batch))).toEqual(asPaid(paid))
    expect(await runs.run(batch)).toMatchObject({ status: 200, body: { status: 'completed', settledCount: 2 } })
    await expectRunPaidOnce(runs, batch, [4n, 8n])
    expect(await statusesOf(older)).toEqual(['ready', 'ready'])
  },
)

test.each([
  ['than the backup', []],
  ['than a backup that has some of its transfers', ['transfers']],
])('settles what a channel has paid that is newer %s', async (_, kept) => {
  const { batch, paid, resumed } = await restoreRun('before the run')
  if (kept.length === 0) await fixture.db.delete(transfers).where(eq(transfers.account, runs.channel))
  await fixture.db.delete(relayChannels)
  await using _host = await fixture.relay()
  expect(await resumed()).toMatchObject({ found: expect.any(Number) })
  expect(endsOf(await runs.read(batch))).toEqual(asPaid(paid))
  await expect.poll(() => runs.run(batch)).toMatchObject({ status: 200 })
  await expectRunPaidOnce(runs, batch, [4n, 8n])
})

test('settles a payout of a run that is a draft in the restored database', async () => {
  const { batch, paid, resumed } = await restoreRun('while a draft')
  await using _host = await fixture.relay()
  expect(await resumed()).toEqual({ found: 2 })
  const draft = await runs.read(batch)
  expect(draft.status).toBe('draft')
  expect(endsOf(draft)).toEqual(asPaid(paid))
  const path = `/batches/${batch.id}`
  expect(await runs.ask(batch.employer, 'DELETE', path)).toMatchObject({ status: 409, body: { code: 'batch-sent' } })
  const completed = { status: 'completed', payoutCount: 2, settledCount: 2 }
  expect(await runs.ask(batch.employer, 'POST', `${path}/ready`)).toMatchObject({ status: 200, body: completed })
  expect(await runs.run(batch)).toMatchObject({ status: 200 })
  await expectRunPaidOnce(runs, batch, [4n, 8n])
})

test('leaves a payout of a draft that has replaced a paid one to be paid, and shows that one’s payment', async () => {
  const { batch, paid, resumed } = await restoreRun('while a draft')
  await stopEarly()
  const [first, second] = batch.payouts
  expect(await runs.ask(batch.employer, 'DELETE', `/payouts/${first?.id}`)).toMatchObject({ status: 200 })
  const instructions = [{ contractorId: first?.contractorId, encryptedAmount: 'to be sealed' }]
  const path = `/batches/${batch.id}`
  expect(await runs.ask(batch.employer, 'POST', `${path}/instructions`, { instructions })).toMatchObject({
    status: 200,
  })
  await using _host = await fixture.relay()
  expect(await resumed()).toEqual({ found: 2 })
  expect(await runs.ask(batch.employer, 'POST', `${path}/ready`)).toMatchObject({
    status: 200,
    body: { status: 'started', payoutCount: 2, settledCount: 1 },
  })
  const { payouts } = await runs.read(batch)
  expect(payouts.map(({ id, status, txHash }) => [id, status, txHash]).slice(0, 2)).toEqual([
    [first?.id, 'canceled', paid[0]],
    [second?.id, 'paid', paid[1]],
  ])
  expect(payouts.slice(2).map(({ status, txHash }) => [status, txHash])).toEqual([['ready', undefined]])
})

test('settles payouts that are younger than their payments, because the clock of the service was ahead', async () => {
  const { batch, paid, resumed } = await restoreRun('before the run')
  await query(`UPDATE payouts SET created_at = created_at + interval '1 hour' WHERE batch = $1`, [batch.id])
  await using _host = await fixture.relay()
  expect(await resumed()).toEqual({ found: 2 })
  expect(endsOf(await runs.read(batch))).toEqual(asPaid(paid))
})

test('settles a payment in the next run that was recorded for no payout', async () => {
  const { batch, paid, resumed } = await restoreRun('before the run')
  const setAddresses = async (addresses: readonly (string | undefined)[]) => {
    for (const [index, { id }] of batch.payouts.entries()) {
      await query('UPDATE payouts SET address = $2 WHERE id = $1', [id, addresses[index]])
    }
  }
  // The payouts have been taken from their payees for a moment.
  await setAddresses(batch.payouts.map(() => batch.employer.address))
  await stopEarly()
  await using _host = await fixture.relay()
  await expect.poll(() => problemOf(runs.channel)).toBe('purpose-unknown')
  await expect.poll(() => fixture.stop()).toMatchObject({ found: 2 })
  await setAddresses(batch.payouts.map(({ address }) => address))
  await expect.poll(() => resumePayments(fixture.operator(), { note: 'found the payouts' })).toBe('resumed')
  expect(await resumed()).toMatchObject({ found: 2 })
  expect(await statusesOf(batch)).toEqual(['ready', 'ready'])
  expect(await runs.run(batch)).toMatchObject({ status: 200 })
  await expectRunPaidOnce(runs, batch, [4n, 8n])
  expect(endsOf(await runs.read(batch))).toEqual(asPaid(paid))
})

test('waits for a transfer of another channel that is open for a line that was paid', async () => {
  const { batch, paid, resumed } = await restoreRun('within the run')
  const [line] = await readLines(
    fixture.db,
    and(eq(relayLines.payout, batch.payouts[0]?.id ?? ''), isNull(relayLines.outcome)),
  )
  if (!line) throw new Error('no line waits')
  const ofLine = { lineJob: line.job, linePosition: line.position, recipient: line.recipient ?? '' }
  const open = transferRow({ ...ofLine, kind: 'delegated', account: otherChannel(), owner: line.quotaAccount })
  await insertRows(fixture.db, { transfers: [open] })
  await using _host = await fixture.relay()
  await expect.poll(() => problemOf(runs.channel)).toBe('transfer-open')
  expect(await resumePayments(fixture.operator(), { note: 'too early' })).toMatchObject({
    waitsFor: expect.any(String),
  })
  await fixture.pass(20)
  expect(await fixture.stop()).toBeDefined()
  await fixture.db.delete(transfers).where(eq(transfers.id, open.id))
  expect(await resumed()).toEqual({ found: 2 })
  const lines = await runs.linesOf(batch)
  expect(lines.map(({ state, hash }) => `${state} ${hash}`)).toEqual(asPaid(paid))
})

test('records the payments of a batch that the restored database lacks, and waits for an operator', async () => {
  const { batch, employer, paid, older, resumed } = await restoreRun('before the batch')
  expect(await runs.ask(employer, 'GET', `/batches/${batch.id}`)).toMatchObject({ status: 404 })
  await using _host = await fixture.relay()
  await expect.poll(() => problemOf(runs.channel)).toBe('purpose-unknown')
  await fixture.pass(20)
  expect(await fixture.stop()).toMatchObject({ found: 2 })
  expect(await resumePayments(fixture.operator(), { note: 'told the employer' })).toBe('resumed')
  expect(await resumed()).toMatchObject({ note: 'told the employer', found: 2, suspended: 0 })
  const rows = await fixture.db.query.transfers.findMany()
  const recorded = rows.filter(({ owner, kind }) => owner === employer.address && kind === 'delegated')
  expect(recorded.map(({ hash }) => hash).toSorted()).toEqual(paid.toSorted())
  expect(recorded.map(({ status, payout }) => [status, payout])).toEqual(paid.map(() => ['succeeded', null]))
  // An explorer shows the hash of the fee bump: a search has to find the transfer by it.
  const found = await Promise.all(paid.map((hash = '') => searchRecords(fixture.db, hash)))
  expect(found.map(({ hits }) => hits.map(({ id }) => id))).toEqual(
    paid.map((hash) => recorded.filter((transfer) => transfer.hash === hash).map(({ id }) => id)),
  )
  expect(await statusesOf(older)).toEqual(['ready', 'ready'])
  // The channel pays again.
  await runs.revoke(employer)
  await runs.delegate(employer, 48n)
  expect(await runs.run(older)).toMatchObject({ status: 200 })
  await runs.ended(older)
  expect(await runs.received(older)).toEqual([20n, 40n])
})

/** Makes a new wallet one of another wallet's organisation. */
async function joinOrganisation({ address: other }: { address: string }): Promise<SignedInPayer> {
  const colleague = await runs.employer()
  const [joined] = await fixture.db.select().from(identities).where(eq(identities.sub, other))
  const row = identityRow({ sub: colleague.address, ...(joined && { organisation: joined.organisation }) })
  await fixture.db.insert(identities).values(row)
  return colleague
}

test.each(['its wallet', 'another wallet of its organisation'])(
  'lets an employer start no run while payments are stopped, by %s, and has nothing left to pay afterwards',
  async (wallet) => {
    const { batch, employer, resumed } = await restoreRun('before the run')
    const payer = wallet === 'its wallet' ? employer : await joinOrganisation(employer)
    await stopEarly()
    const again = { ...batch, employer: payer }
    const seals = await Promise.all(
      batch.payouts.map(async ({ id, contractorId }) => {
        return { payoutId: id, encryptedAmount: await runs.seal(batch.id, contractorId, 4n, otherChannel()) }
      }),
    )
    expect(await runs.ask(payer, 'POST', `/batches/${batch.id}/seals`, { seals })).toMatchObject({ status: 200 })
    await runs.delegate(payer, 8n, otherChannel())
    expect(await runs.run<unknown>(again)).toMatchObject({
      status: 409,
      body: { code: 'run-not-ready', errors: [{ channel: otherChannel(), reason: 'channel-unavailable' }] },
    })
    const terms = await runs.ask<{ channels: { available: boolean }[] }>(payer, 'GET', '/relay')
    expect(terms.body.channels.map(({ available }) => available)).toEqual([false, false])
    await using _host = await fixture.relay()
    expect(await resumed()).toEqual({ found: 2 })
    expect(await runs.run(again)).toMatchObject({ status: 200, body: { status: 'completed', settledCount: 2 } })
    await expectRunPaidOnce(runs, batch, [4n, 8n])
  },
)

test('settles the lines of a run that another wallet of the organisation has paid since the backup', async () => {
  const { employer, batch } = await runs.begin([4n, 8n])
  const restore = await backups.backUp()
  await runs.revoke(employer)
  const colleague = await joinOrganisation(employer)
  {
    await using _host = await fixture.relay({ times: OFTEN })
    await runs.ended(batch)
    expect(await statusesOf(batch)).toEqual(['delegation-revoked', 'delegation-revoked'])
    await runs.delegate(colleague, 12n)
    expect(await runs.run({ ...batch, employer: colleague })).toMatchObject({ status: 200 })
    await runs.ended(batch)
  }
  const paid = endsOf(await runs.read(batch))
  expect(await runs.received(batch)).toEqual([4n, 8n])
  const resumed = await restore()
  // The delegation that was revoked is given again.
  await runs.delegate(employer, 12n)
  await using _host = await fixture.relay({ times: OFTEN })
  expect(await resumed()).toEqual({ found: 2 })
  expect(endsOf(await runs.read(batch))).toEqual(paid)
  expect(await runs.received(batch)).toEqual([4n, 8n])
})

test('shows the payment of a payout that is canceled while payments are stopped', async () => {
  const { batch, next, paid, resumed } = await restoreRun('within the run')
  const { first: canceled } = batch
  await stopEarly()
  expect(await runs.cancel(batch, canceled)).toMatchObject({ status: 200 })
  await using _host = await fixture.relay()
  expect(await resumed()).toEqual({ found: 2 })
  const lines = (await runs.linesOf(batch)).map(({ state, hash }) => `${state} ${hash}`)
  expect(lines).toEqual(asPaid(paid))
  const { payouts } = await runs.read(batch)
  expect(payouts.map(({ status, txHash }) => [status, txHash])).toEqual([
    ['canceled', paid[0]],
    ['paid', paid[1]],
  ])
  expect(payouts[0]?.error).toBe('paid although canceled: the ledger shows the payment')
  const noticed = (await readAttention(fixture.db, new Date())).items.filter((item) => item.batch?.id === batch.id)
  expect(noticed.map(({ what }) => what)).toEqual([
    expect.stringMatching(/ was paid, although the payout is canceled$/),
  ])
  // Another payout to the same payee that the payment would fit stays unpaid.
  expect(await runs.read(next)).toMatchObject({ payouts: [{ status: 'ready' }] })
})
