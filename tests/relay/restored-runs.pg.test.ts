import { and, eq, isNull, sql } from 'drizzle-orm'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { identities } from '#drizzle/schema/directory.ts'
import { relayChannels, relayLines } from '#drizzle/schema/relay.ts'
import { envelopes, transfers } from '#drizzle/schema/transfers.ts'
import { sendAndWait } from '#lib/cli/client/participants.ts'
import { identityRow, insertRows, transferRow } from '#lib/cli/seed/rows.ts'
import { readAttention } from '#lib/dashboard/overview.ts'
import { searchRecords } from '#lib/dashboard/search.ts'
import type { BatchWithPayouts } from '#lib/directory/batches/batches.ts'
import { resumePayments } from '#lib/relay/resume.ts'
import { runChore } from '#lib/server/maintenance.ts'
import { signElsewhere } from '../support/elsewhere.ts'
import { passLedgers } from '../support/ledgers.ts'
import { readLines } from '../support/lines.ts'
import { expectRunPaidOnce, quotaOf } from '../support/paid-once.ts'
import type { SignedInPayer } from '../support/test-service.ts'
import { withhold } from '../support/transfers.ts'
import { openBackups } from './backup.ts'
import { openRelayService, type RelayService } from './relay-service.ts'
import { openRunFixture, type RunBatch, type RunFixture } from './run-fixture.ts'
import { OFTEN } from './short-times.ts'

let fixture: RelayService
let runs: RunFixture
let backups: Awaited<ReturnType<typeof openBackups>>
beforeAll(async () => {
  fixture = await openRelayService({ channels: 2 })
  runs = openRunFixture(fixture)
  backups = await openBackups(fixture)
  await using _host = await fixture.relay()
  const areAnnounced = async () => (await fixture.db.query.relayChannels.findMany()).every((one) => one.runs)
  await vi.waitUntil(areAnnounced, { timeout: 300_000 })
})
afterAll(async () => {
  await backups?.close()
  await fixture?.close()
})
afterEach(() => fixture.ledger.proxy.rule(null))

const query = (text: string, values: unknown[] = []) => backups.connection.query(text, values)
const otherChannel = () => fixture.channels[1]?.publicKey() ?? ''
const problemOf = async (address: string) =>
  (await fixture.db.query.relayChannels.findFirst({ where: (channel, { eq }) => eq(channel.address, address) }))
    ?.reconcileProblem
const readProblems = () => Promise.all([problemOf(runs.channel), problemOf(otherChannel())])
const endsOf = ({ payouts }: BatchWithPayouts) => payouts.map(({ status, txHash }) => `${status} ${txHash}`)
const statusesOf = async (batch: RunBatch) =>
  (await runs.read(batch)).payouts.map(({ status, error }) => error ?? status)

const pass = (ledgers: number) => passLedgers(fixture.ledger.network, ledgers)
/** Uses up a sequence number of the channel that pays no run, without a relay. */
const moveOther = () => signElsewhere(fixture.ledger.network, fixture.channel(otherChannel()))

/** Stops payments before a relay has looked at the ledger. */
async function stopEarly(): Promise<void> {
  await runChore(fixture.running, 'channels')
  expect(await fixture.stop()).toMatchObject({ found: 0 })
}

const operator = () => ({
  db: fixture.db,
  now: new Date(),
  actor: { kind: 'operator' as const, sub: 'Ada' },
  token: fixture.ledger.network.token,
})

type Moment = 'within the run' | 'before the run' | 'before the seals' | 'while a draft' | 'before the batch'

/**
 * A batch of two that a run has paid, in a database that is restored to a moment within that run, before it, or before the
 * batch; and the next batch, which has a payout to the first payee.
 */
async function restoreRun(moment: Moment) {
  const isWithin = moment === 'within the run'
  const employer = await runs.employer()
  // Older payouts to the same payees, of other amounts, that stay unpaid.
  const older = await runs.batchOf(employer, [16n, 32n])
  const restoreOlder = moment === 'before the batch' ? await backups.backUp() : undefined
  const batch = await runs.batchOf(employer, [4n, 8n], { like: older })
  const { body: created } = await runs.ask<{ id: string }>(employer, 'POST', '/batches', { name: 'next' })
  const instructions = batch.payouts
    .slice(0, 1)
    .map(({ contractorId }) => ({ contractorId, encryptedAmount: 'to be sealed' }))
  await runs.ask(employer, 'POST', `/batches/${created.id}/instructions`, { instructions })
  await runs.ask(employer, 'POST', `/batches/${created.id}/ready`)
  await runs.delegate(employer, 20n)
  if (isWithin) expect(await runs.run(batch)).toMatchObject({ status: 200 })
  const seals = batch.payouts.map(({ id, encryptedAmount }) => ({ payoutId: id, encryptedAmount }))
  const areUnsealed = moment === 'before the seals'
  if (areUnsealed)
    await query(`UPDATE payouts SET encrypted_amount = 'none' WHERE batch = ANY ($1)`, [[batch.id, older.id]])
  const isDraft = moment === 'while a draft'
  const setStatus = async (status: string) => {
    await query(`UPDATE batches SET status = $2 WHERE id = $1`, [batch.id, status])
    await query(`UPDATE payouts SET status = $2 WHERE batch = $1`, [batch.id, status])
  }
  if (isDraft) await setStatus('draft')
  const restore = restoreOlder ?? (await backups.backUp())
  if (isDraft) await setStatus('ready')
  if (areUnsealed) await runs.ask(employer, 'POST', `/batches/${batch.id}/seals`, { seals })
  if (!isWithin) expect(await runs.run(batch)).toMatchObject({ status: 200 })
  {
    await using _host = await fixture.relay()
    await expectRunPaidOnce(runs, batch, [4n, 8n])
  }
  const paid = (await runs.read(batch)).payouts.map(({ txHash }) => txHash)
  const resumed = await restore()
  const status = isDraft ? 'draft' : 'ready'
  if (!restoreOlder) expect(await statusesOf(batch)).toEqual([status, status])
  return { batch, employer, paid, older, next: { id: created.id, employer }, resumed }
}

const asPaid = (hashes: readonly (string | undefined)[]) => hashes.map((hash) => `paid ${hash}`)

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
  await expect.poll(() => resumePayments(operator(), { note: 'found the payouts' })).toBe('resumed')
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
  expect(await resumePayments(operator(), { note: 'too early' })).toMatchObject({ waitsFor: expect.any(String) })
  await pass(20)
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
  await pass(20)
  expect(await fixture.stop()).toMatchObject({ found: 2 })
  expect(await resumePayments(operator(), { note: 'told the employer' })).toBe('resumed')
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
  const row = identityRow({ sub: colleague.address, organisation: joined?.organisation ?? null })
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
  const employer = await runs.employer()
  const batch = await runs.batchOf(employer, [4n, 8n])
  await runs.delegate(employer, 12n)
  await runs.run(batch)
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
  const [canceled] = batch.payouts
  if (!canceled) throw new Error('no payout')
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
  expect(await resumePayments(operator(), { note: 'no history' })).toBe('resumed')
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
  const employer = await runs.employer()
  const batch = await runs.batchOf(employer, [4n, 8n])
  await runs.delegate(employer, 12n)
  await runs.run(batch)
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
  expect(await resumePayments(operator(), { note: 'in a hurry' })).toBe('resumed')
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
  const [payout] = batch.payouts
  if (!payout) throw new Error('no payout')
  const resumed = await fixture.beforeStop()
  await moveOther()
  await stopEarly()
  const refused = await runs.pay(employer, payout, 4n)
  expect(refused).toMatchObject({ status: 422, body: { code: 'reconciling' } })
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  // One that was instructed since cannot have been paid before.
  const newer = await runs.batchOf(employer, [8n])
  const [newPayout] = newer.payouts
  if (!newPayout) throw new Error('no payout')
  expect(await runs.pay(employer, newPayout, 8n)).toMatchObject({ status: 200 })
  await using _host = await fixture.relay()
  expect(await resumed()).toEqual({ found: 0 })
  expect(await runs.pay(employer, payout, 4n)).toMatchObject({ status: 200 })
  expect([await statusesOf(batch), await statusesOf(newer)]).toEqual([['paid'], ['paid']])
})

test('refuses a client’s payment of a payout that was paid since the backup, during the stop and after it', async () => {
  const { batch, employer, resumed } = await restoreRun('before the run')
  await stopEarly()
  const [payout] = batch.payouts
  if (!payout) throw new Error('no payout')
  expect(await runs.pay(employer, payout, 4n)).toMatchObject({ status: 422, body: { code: 'reconciling' } })
  await using _host = await fixture.relay()
  expect(await resumed()).toEqual({ found: 2 })
  expect(await runs.pay(employer, payout, 4n)).toMatchObject({ status: 422, body: { code: 'payout' } })
  expect(await runs.received(batch)).toEqual([4n, 8n])
})

test('leaves a payout to its employer whose client has paid it since the backup, and settles it when that posts its transaction', async () => {
  const employer = await runs.employer()
  const batch = await runs.batchOf(employer, [4n, 8n])
  const [payout] = batch.payouts
  if (!payout) throw new Error('no payout')
  const restore = await backups.backUp()
  // The times of ledgers are whole seconds.
  await pass(6)
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
