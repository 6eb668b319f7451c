import { randomUUID } from 'node:crypto'
import { Keypair } from '@stellar/stellar-sdk'
import { eq } from 'drizzle-orm'
import { afterAll, describe, expect, test } from 'vitest'
import { payouts } from '#drizzle/schema/directory.ts'
import { paymentStops, relayChannels } from '#drizzle/schema/relay.ts'
import { quotas, type TransferStatus, transfers } from '#drizzle/schema/transfers.ts'
import type { EmployerContext } from '#lib/directory/context.ts'
import { cancelPayout } from '#lib/directory/payouts/cancellation.ts'
import { answer } from '#lib/relay/answer.ts'
import { readTokenEvents } from '#lib/relay/channel-events.ts'
import { endLine, endOverdueLines } from '#lib/relay/chores.ts'
import type { LeasedLine } from '#lib/relay/lease.ts'
import { recordPayment } from '#lib/relay/past-payments.ts'
import { purposeOf } from '#lib/relay/payment-mark.ts'
import { resumeIfReconciled } from '#lib/relay/resume.ts'
import type { LineId } from '#lib/transfers/line.ts'
import { describeLineError } from '#lib/transfers/line-error.ts'
import { findTransfer, findTransferOfHash } from '#lib/transfers/rows.ts'
import { payment, relayOn } from './counting-ledger.ts'
import { DAY_MS, FAILED, idOf, LATER, type LineFixture, NOW, openLineFixture, RECIPIENT } from './line-fixture.ts'
import { expireLeases } from './mortal-relay.ts'

const fixture = await openLineFixture()
afterAll(fixture.close)
const { db, relayWith, makeChannels, makeJob, makeLine, lease, take } = fixture
const { takeNew, record, settle, lineOf, jobOf, channelOf, setLine, setChannel } = fixture

/** A run of this employer whose lines are bound to channel A. */
const makeRun = (employer: string, count = 1) => fixture.makeRun(employer, Array<string>(count).fill('A'))

describe('a transfer is recorded', () => {
  test('for the leased line, which counts as sent from then on', async () => {
    await makeChannels('A')
    const line = await takeNew()
    await setLine(line, { doubtedLedger: 7, due: LATER })
    const transfer = await record(line)
    expect(transfer).toMatchObject({ lineJob: line.job, linePosition: line.position, account: 'A' })
    const sent = { state: 'sent', leasedUntil: null, doubtedLedger: null, due: NOW, sentAt: expect.any(Date) }
    expect(await lineOf(line)).toMatchObject(sent)
  })

  test('even after the lease has lapsed, and the host that leases the line now records none', async () => {
    await makeChannels('A', 'B')
    await makeLine()
    const first = await take('A')
    await expireLeases(db)
    const second = await take('B')
    const transfer = await record(first)
    await expect(record(second)).rejects.toMatchObject({ code: 'line-gone' })
    expect(await lineOf(first)).toMatchObject({ state: 'sent', channel: 'A' })
    expect((await db.select().from(transfers)).map(({ id }) => id)).toEqual([transfer.id])
  })

  test('for no line that has ended, or that a transfer may pay', async () => {
    await makeChannels('A', 'B')
    await makeLine()
    const line = await take('A')
    const other = { ...line, channel: 'B' }
    const first = await record(line)
    await expect(record(other)).rejects.toMatchObject({ code: 'line-gone' })
    await settle(first, 'unknown')
    await expect(record(other)).rejects.toMatchObject({ code: 'line-gone' })
    const ended = await takeNew()
    await endLine(relayWith(), ended, FAILED)
    await expect(record(ended)).rejects.toMatchObject({ code: 'line-gone' })
  })

  test.each([
    ['payments are stopped', 'payments-stopped', () => fixture.stop('B')],
    ['an operator has paused its channel', 'channel-paused', () => setChannel('A', { paused: true })],
    ['an operator has retired its channel', 'channel-paused', () => setChannel('A', { retired: true })],
    ['its channel was not compared with the ledger', 'not-adopted', () => setChannel('A', { adoptedSequence: null })],
  ])('for no line if %s', async (_, code, change) => {
    await makeChannels('A', 'B')
    const line = await takeNew()
    await change()
    await expect(record(line)).rejects.toMatchObject({ code })
    expect(await db.$count(transfers)).toBe(0)
    expect(await lineOf(line)).toMatchObject({ state: 'preparing', sentAt: null })
  })

  test('only with the number after the last known one', async () => {
    await makeChannels('A')
    await setChannel('A', { adoptedSequence: 5n })
    await makeJob(3)
    const used: [bigint, 'succeeded' | 'failed' | 'expired' | 'unknown'][] = [
      [6n, 'succeeded'],
      [7n, 'expired'],
      [7n, 'failed'],
    ]
    for (const [number, status] of used) {
      const line = await take('A')
      await expect(record(line, randomUUID(), number + 1n)).rejects.toMatchObject({ code: 'channel-moved' })
      await settle(await record(line, randomUUID(), number), status)
    }
    const line = await take('A')
    await record(line, randomUUID(), 8n)
  })

  test('for one of two lines that two hosts have signed with the same number', async () => {
    await makeChannels('A')
    await makeJob(2)
    const one = await take('A')
    await expireLeases(db)
    await setLine(one, { due: new Date(Date.now() + DAY_MS) })
    const two = await take('A')
    expect(idOf(two)).not.toEqual(idOf(one))
    const first = await record(one)
    await expect(record(two)).rejects.toMatchObject({ reason: 'another-open' })
    expect(await lineOf(two)).toMatchObject({ sentAt: null })
    await settle(first, 'succeeded')
    expect((await lineOf(one)).outcome).toBe('paid')
    expect((await lineOf(two)).outcome).toBeNull()
  })
})

describe('a line whose transfer has ended', () => {
  async function settleOne(status: Parameters<LineFixture['settle']>[1], count = 1) {
    await makeChannels('A')
    await makeJob(count)
    const line = await take('A')
    await settle(await record(line, `${line.job} one`), status)
    return { line, row: await lineOf(line), job: await jobOf(line.job) }
  }

  test('is paid, closes its job, and leaves its channel the opening of its new balance', async () => {
    const { line, row, job } = await settleOne('succeeded')
    const hash = `${line.job} one`
    expect(row).toMatchObject({ outcome: 'paid', hash, sealedAmount: null, settledAt: LATER })
    expect(job).toMatchObject({ status: 'completed', error: null, endedAt: LATER })
    expect(await channelOf('A')).toMatchObject({ sealedOpening: `after ${hash}`, problem: null })
  })

  test('leaves its job open while other lines wait', async () => {
    const { job } = await settleOne('succeeded', 2)
    expect(job).toMatchObject({ status: 'running', endedAt: null })
  })

  test('ends as unknown, and fails its job, when the history is lost', async () => {
    const { row, job } = await settleOne('unknown')
    expect(row).toMatchObject({ outcome: 'unknown', error: 'history-lost', sealedAmount: null, hash: null })
    expect(job).toMatchObject({ status: 'failed', error: `transfer 0: ${describeLineError('history-lost')}` })
  })

  test.each([
    ['expired', 0, null],
    ['failed', 1, 'one'],
  ] as const)('waits again when it has %s', async (status, failures, hash) => {
    const { line, row, job } = await settleOne(status)
    const name = hash && `${line.job} ${hash}`
    expect(row).toMatchObject({ state: 'waiting', outcome: null, failures, hash: name, sealedAmount: 'sealed' })
    expect(job).toMatchObject({ status: 'running' })
    expect(await channelOf('A')).toMatchObject({ sealedOpening: null })
    expect(await lease('A')).toMatchObject(idOf(line))
  })

  test('fails with its third failure, however often transfers expire', async () => {
    await makeChannels('A')
    const id = await makeLine()
    for (const status of ['expired', 'failed', 'expired', 'expired', 'failed', 'expired'] as const)
      await settle(await record(await take('A')), status)
    expect(await lineOf(id)).toMatchObject({ outcome: null, failures: 2 })
    await settle(await record(await take('A'), `${id.job} last`), 'failed')
    const error = 'failed-too-often'
    expect(await lineOf(id)).toMatchObject({ outcome: 'failed', failures: 3, error, hash: `${id.job} last` })
    expect(await jobOf(id.job)).toMatchObject({
      status: 'failed',
      error: 'transfer 0: its transfer failed on the ledger too often',
    })
  })

  test('is paid, although ten transfers have expired', async () => {
    await makeChannels('A')
    const id = await makeLine()
    for (let round = 0; round < 10; round += 1) await settle(await record(await take('A')), 'expired')
    expect(await lineOf(id)).toMatchObject({ outcome: null, failures: 0, error: null })
    await settle(await record(await take('A')), 'succeeded')
    expect(await lineOf(id)).toMatchObject({ outcome: 'paid' })
    expect(await jobOf(id.job)).toMatchObject({ status: 'completed' })
  })

  const cancel = async (employer: string, payout: string) => {
    const [row] = await db.select().from(payouts).where(eq(payouts.id, payout))
    const actor = { kind: 'ledger' as const, sub: employer }
    const context = { db, employer: { organisation: row?.organisation ?? '', actor }, now: LATER }
    await cancelPayout(context as EmployerContext, payout)
  }
  const pay = async (employer: string, payoutId: string) =>
    await settle(await fixture.recordOfClient({ from: employer, payoutId }), 'succeeded')

  test.each([
    ['has canceled', cancel],
    ['has paid', pay],
  ])('is canceled if its employer %s its payout before the next try', async (_, end) => {
    await makeChannels('A')
    const employer = Keypair.random().publicKey()
    await makeRun(employer)
    await settle(await record(await take('A')), 'expired')
    const line = await take('A')
    await end(employer, line.payout ?? '')
    const before = await db.$count(transfers)
    const refusal = await record(line).catch((error: unknown) => error)
    expect(refusal).toMatchObject({ reason: 'payout' })
    expect(await answer(relayWith('A'), line, refusal)).toBe('left')
    expect(await db.$count(transfers)).toBe(before)
    expect(await lineOf(line)).toMatchObject({ outcome: 'canceled', failures: 0, hash: null })
    expect(await jobOf(line.job)).toMatchObject({ status: 'completed' })
  })

  test('shows that its channel can pay', async () => {
    await makeChannels('A')
    const transfer = await record(await takeNew())
    await setChannel('A', { problem: 'balance' })
    await settle(transfer, 'succeeded')
    expect(await channelOf('A')).toMatchObject({ problem: null })
  })

  test.each([
    ['succeeded', 'paid', 'completed'],
    ['failed', null, 'running'],
  ] as const)('is settled during a stop, too: a transfer that has %s', async (status, outcome, job) => {
    await makeChannels('A')
    const line = await takeNew()
    const transfer = await record(line)
    await fixture.stop()
    await settle(transfer, status)
    expect((await lineOf(line)).outcome).toBe(outcome)
    expect((await jobOf(line.job))?.status).toBe(job)
  })
})

describe('a line ends without a transfer', () => {
  test('once, and closes its job', async () => {
    await makeChannels('A')
    const line = await takeNew()
    expect(await endLine(relayWith(), line, { ...FAILED, unable: ['A'] })).toBe(true)
    expect(await endLine(relayWith(), line, { outcome: 'canceled' })).toBe(false)
    const ended = { ...FAILED, unable: ['A'], sealedAmount: null, leasedUntil: null }
    expect(await lineOf(line)).toMatchObject({ ...ended, settledAt: LATER })
    expect(await jobOf(line.job)).toMatchObject({
      status: 'failed',
      error: 'transfer 0: the transfer would fail',
      endedAt: LATER,
    })
  })

  const endAfter = async (status: TransferStatus) => {
    await makeChannels('A')
    const line = await takeNew()
    const transfer = await record(line)
    if (status !== 'open') await settle(transfer, status)
    const hasEnded = await endLine(relayWith(), line, FAILED)
    if (status === 'open') await settle(transfer, 'succeeded')
    return { hasEnded, outcome: (await lineOf(line)).outcome }
  }
  test.each([
    ['open', 'paid'],
    ['succeeded', 'paid'],
    ['unknown', 'unknown'],
  ] as const)('but not if it has one that is %s', async (status, outcome) => {
    expect(await endAfter(status)).toEqual({ hasEnded: false, outcome })
  })
  test.each(['failed', 'expired'] as const)('if its transfer has %s', async (status) => {
    expect(await endAfter(status)).toEqual({ hasEnded: true, outcome: 'failed' })
  })

  test('or gets its transfer, never both, when both happen at once', async () => {
    await makeChannels('A')
    const counts = { recorded: 0, ended: 0 }
    for (let round = 0; round < 40; round += 1) {
      const line = await takeNew()
      const both = [() => record(line), () => endLine(relayWith(), line, FAILED)] as const
      const [first, second] = round % 2 === 0 ? both : both.toReversed()
      await Promise.allSettled([first?.(), second?.()])
      const [transfer] = await db.select().from(transfers).where(eq(transfers.lineJob, line.job))
      const { outcome } = await lineOf(line)
      expect(outcome).toBe(transfer ? null : 'failed')
      counts[transfer ? 'recorded' : 'ended'] += 1
      if (transfer) await settle(transfer, 'succeeded')
    }
    expect(counts.recorded + counts.ended).toBe(40)
  })

  test('only if a transfer that is settled at the same time leaves it waiting', async () => {
    await makeChannels('A')
    for (let round = 0; round < 40; round += 1) {
      const status = round % 4 < 2 ? 'succeeded' : 'failed'
      const line = await takeNew()
      const transfer = await record(line)
      const end = () => endLine(relayWith(), line, FAILED)
      const close = () => settle(transfer, status)
      const order = round % 2 === 0 ? ([end(), close()] as const) : ([close(), end()] as const)
      const results = await Promise.all(order)
      const hasEnded = results.includes(true)
      const { outcome, failures } = await lineOf(line)
      expect([outcome, failures]).toEqual(status === 'succeeded' ? ['paid', 0] : [hasEnded ? 'failed' : null, 1])
      expect((await jobOf(line.job))?.status).toBe(
        status === 'succeeded' ? 'completed' : hasEnded ? 'failed' : 'running',
      )
      if (outcome === null) expect(await end()).toBe(true)
    }
  })
})

test('two channels record one line at the same time: one transfer pays it', async () => {
  await makeChannels('A', 'B')
  for (let round = 0; round < 20; round += 1) {
    await makeLine()
    const line = await take('A')
    const results = await Promise.allSettled([record(line), record({ ...line, channel: 'B' })])
    const recorded = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
    expect(recorded).toHaveLength(1)
    for (const transfer of recorded) await settle(transfer, 'succeeded')
    expect(await lineOf(line)).toMatchObject({ outcome: 'paid', channel: recorded[0]?.account })
  }
})

test('a payment that the ledger has applied leaves the open transfer of another line with its number and recipient', async () => {
  const signer = Keypair.random()
  const channel = signer.publicKey()
  await makeChannels(channel)
  await setChannel(channel, { adoptedSequence: 4n })
  const [paid, open] = [await makeLine(), await makeLine()]
  const transfer = await record({ ...(await lineOf(open)), channel }, `${open.job} open`, 5n)
  const purpose = purposeOf(await lineOf(paid))
  const applied = payment({ channel: signer, to: RECIPIENT, purpose, ledger: 80, number: 5n })
  const relay = relayOn(fixture, { payments: [applied] }, [signer])
  for (const event of (await readTokenEvents(relay, channel, undefined)).transfers) await recordPayment(relay, event)
  const found = { status: 'succeeded', sequenceNumber: 5n, lineJob: paid.job }
  expect(await findTransferOfHash(db, applied.hash)).toMatchObject({ transfer: found })
  expect(await lineOf(paid)).toMatchObject({ outcome: 'paid', hash: applied.hash })
  const recorded = await findTransfer(db, transfer.id)
  expect(recorded?.transfer.status).toBe('open')
  expect(recorded?.envelopes.map(({ innerHash }) => innerHash)).toEqual([`${open.job} open`])
  expect(await lineOf(open)).toMatchObject({ outcome: null, state: 'sent' })
  // Its number was used: it expires, and its line waits for the next one.
  await settle(transfer, 'expired')
  expect(await lineOf(open)).toMatchObject({ outcome: null, state: 'waiting' })
})

describe('a job whose last lines end at the same time', () => {
  test('is closed, with the error of the first one', async () => {
    const names = ['A', 'B', 'C', 'D']
    await makeChannels(...names)
    for (let round = 0; round < 10; round += 1) {
      await makeJob(4)
      const [first, ...others] = await Promise.all(names.map(async (name) => await takeSome(name)))
      if (!first) throw new Error('no line')
      const open = await Promise.all(others.map((line) => record(line)))
      await Promise.all([
        endLine(relayWith(), first, { outcome: 'failed', error: 'contract-error-3506' }),
        ...open.map((transfer) => settle(transfer, 'succeeded')),
      ])
      const error = `transfer ${first.position}: ${describeLineError('contract-error-3506')}`
      expect(await jobOf(first.job)).toMatchObject({ status: 'failed', error, endedAt: LATER })
    }
  })

  /** Leases a line, also if other channels lease lines at the same time. */
  async function takeSome(channel: string): Promise<LeasedLine> {
    for (;;) {
      const line = await lease(channel)
      if (line) return line
    }
  }

  test('is closed once: a run returns the quota that it has not used', async () => {
    await makeChannels('A')
    const countOf = async (account: string) =>
      (await db.select().from(quotas).where(eq(quotas.account, account))).map(({ count }) => count)
    for (let round = 0; round < 20; round += 1) {
      const employer = `employer ${round}`
      const lines = await makeRun(employer, 2)
      expect(await countOf(employer)).toEqual([2])
      const ended = await Promise.all(lines.map((line) => endLine(relayWith(), line, { outcome: 'canceled' })))
      expect(ended).toEqual([true, true])
      expect(await jobOf(lines[0]?.job ?? '')).toMatchObject({ status: 'completed' })
      expect(await countOf(employer)).toEqual([0])
    }
  })
})

describe('a line that has waited for a day', () => {
  const dayLater = (latestLedger = 0) => ({
    ...relayWith('A'),
    now: () => new Date(NOW.getTime() + DAY_MS + 60 * 60_000),
    hasClosed: async (ledger: number) => ledger <= latestLedger,
  })
  const outcomesOf = async (...lines: LineId[]) =>
    await Promise.all(lines.map(async (id) => (await lineOf(id)).outcome))

  test('fails only after the channels were compared with the ledger, as after a restore', async () => {
    await makeChannels('A', 'B')
    const line = await makeLine()
    for (const comparedAt of [null, new Date(NOW.getTime() + DAY_MS - 60 * 60_000)]) {
      await setChannel('B', { comparedAt })
      expect(await endOverdueLines(dayLater())).toBe(0)
      expect((await lineOf(line)).outcome).toBeNull()
    }
    await db.update(relayChannels).set({ comparedAt: dayLater().now() })
    expect(await endOverdueLines(dayLater())).toBe(1)
    expect(await lineOf(line)).toMatchObject({ outcome: 'failed', error: 'too-late' })
  })

  test('does not wait for a retired channel, which is not compared', async () => {
    await makeChannels('A', 'B')
    const line = await makeLine()
    await setChannel('B', { comparedAt: null, retired: true })
    expect(await endOverdueLines(dayLater())).toBe(1)
    expect(await outcomesOf(line)).toEqual(['failed'])
  })

  test('does not fail while payments are stopped, however long that takes', async () => {
    await makeChannels('A', 'B')
    const [waiting, leased] = [await makeLine(), await makeLine()]
    await take('A')
    await fixture.stop()
    expect(await endOverdueLines(dayLater())).toBe(0)
    await db.delete(paymentStops)
    expect(await endOverdueLines(dayLater())).toBe(2)
    expect(await outcomesOf(waiting, leased)).toEqual(['failed', 'failed'])
  })

  /** A line that was queued so long ago (ms), after a stop of the last two days that has just ended. */
  async function lineAfterStop(age: number): Promise<LineId> {
    await makeChannels('A')
    const line = await makeLine()
    await setLine(line, { queuedAt: new Date(Date.now() - age) })
    await fixture.stop()
    const since = new Date(Date.now() - 2 * DAY_MS)
    await db.update(paymentStops).set({ since })
    await db.update(relayChannels).set({ reconciledStop: since })
    expect(await resumeIfReconciled(relayWith('A'))).toBe(true)
    return line
  }

  test('has as much time left after a stop as before', async () => {
    const line = await lineAfterStop(2.5 * DAY_MS)
    const chore = { ...dayLater(), now: () => new Date() }
    expect(await endOverdueLines(chore)).toBe(0)
    expect(await endOverdueLines({ ...chore, now: () => new Date(Date.now() + (2 * DAY_MS) / 3) })).toBe(1)
    expect(await outcomesOf(line)).toEqual(['failed'])
  })

  test('has its whole day if it was queued during a stop', async () => {
    const line = await lineAfterStop(DAY_MS / 2)
    const { queuedAt } = await lineOf(line)
    expect(Math.abs(queuedAt.getTime() - Date.now())).toBeLessThan(DAY_MS / 4)
  })

  test('fails if its relay key is lost, and one of a run once its delegation has ended by the ledger', async () => {
    await makeChannels('A')
    const lost = await makeLine('a key that is lost')
    const [ofRun] = await makeRun('ann')
    if (!ofRun) throw new Error('the run has no line')
    await setLine(ofRun, { liveUntil: 700 })
    expect(await endOverdueLines(dayLater(700))).toBe(1)
    expect(await outcomesOf(lost, ofRun)).toEqual(['failed', null])
    expect(await endOverdueLines(dayLater(701))).toBe(1)
    expect(await lineOf(ofRun)).toMatchObject({ outcome: 'failed', error: 'delegation-ended' })
  })

  test('does not fail while a transfer may pay it', async () => {
    await makeChannels('A', 'B')
    await makeJob(2)
    const transfer = await record(await take('A'))
    const other = await record(await take('B'))
    expect(await endOverdueLines(dayLater())).toBe(0)
    await settle(transfer, 'expired')
    await settle(other, 'unknown')
    expect(await endOverdueLines(dayLater())).toBe(1)
    const ids = [transfer, other].map(({ lineJob, linePosition }) => ({
      job: lineJob ?? '',
      position: linePosition ?? 0,
    }))
    expect(await outcomesOf(...ids)).toEqual(['failed', 'unknown'])
  })
})
