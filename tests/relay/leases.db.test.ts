import { randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import { afterAll, describe, expect, inject, test } from 'vitest'
import { type ChannelProblem, paymentStops, relayChannels } from '#drizzle/schema/relay.ts'
import type { TransferStatus } from '#drizzle/schema/transfers.ts'
import { isAnyAble, STALE_AFTER_MS } from '#lib/relay/channel-state.ts'
import { endLine } from '#lib/relay/chores.ts'
import { isWorkWaiting, keepLease, leaseLine, leaveLine, ownerOf } from '#lib/relay/lease.ts'
import { RELAY_TIMES } from '#lib/relay/relay.ts'
import type { LineId } from '#lib/transfers/line.ts'
import { channelAt, DAY_MS, FAILED, idOf, LATER, NOW, openLineFixture } from './line-fixture.ts'
import { expireLeases } from './mortal-relay.ts'

const fixture = await openLineFixture()
afterAll(fixture.close)
const { db, relayWith, makeChannels, makeJob, makeLine, lease, take } = fixture
const { takeNew, record, settle, lineOf, jobOf, setLine, setChannel } = fixture

/** A run of this employer whose lines are bound to channel A. */
const makeRun = (employer: string, count = 1) => fixture.makeRun(employer, Array<string>(count).fill('A'))

/** Leases the next line of channel A and pays it, this many seconds after `NOW`. Resolves to its owner. */
async function payNext(seconds: number): Promise<string> {
  const line = await take('A')
  await settle(await record(line), 'succeeded', new Date(NOW.getTime() + seconds * 1000))
  return ownerOf(line)
}

test('a channel may have enough for a line while a running relay announces it, unless it had too little before', async () => {
  await makeChannels('A', 'B')
  const isAble = (...unable: string[]) => isAnyAble(relayWith(), unable)
  expect([await isAble(), await isAble('A'), await isAble('A', 'B')]).toEqual([true, true, false])
  // A paused one waits for its operator, and so does the line.
  await setChannel('B', { paused: true })
  expect(await isAble('A')).toBe(true)
  await setChannel('B', { retired: true })
  expect([await isAble(), await isAble('A')]).toEqual([true, false])
  await db
    .update(relayChannels)
    .set({ seenAt: sql`clock_timestamp() - make_interval(secs => ${STALE_AFTER_MS / 1000})` })
  expect(await isAble()).toBe(false)
})

describe('a channel leases', () => {
  test('the line that has been due longest, until its lease ends', async () => {
    await makeChannels('A')
    const [later, first] = await makeJob(2)
    if (!later || !first) throw new Error('a line is missing')
    await setLine(later, { due: LATER })
    const before = Date.now()
    const line = await take('A')
    expect(line).toMatchObject({ ...first, channel: 'A', outcome: null })
    const lasts = (line.leasedUntil?.getTime() ?? 0) - before
    expect(lasts).toBeGreaterThan(RELAY_TIMES.lease * 1000 - 1_000)
    expect(lasts).toBeLessThan(RELAY_TIMES.lease * 1000 + 5_000)
    expect((await lineOf(first)).state).toBe('preparing')
  })

  test('one line at a time, from any host', async () => {
    await makeChannels('A', 'B')
    const [one, two] = await makeJob(3)
    expect(await lease('A')).toMatchObject(one ?? {})
    expect(await lease('A')).toBeUndefined()
    expect(await lease('B')).toMatchObject(two ?? {})
  })

  test('a line whose host has died, once its lease is over', async () => {
    await makeChannels('A', 'B')
    const id = await makeLine()
    await take('A')
    expect(await lease('B')).toBeUndefined()
    await expireLeases(db)
    expect((await lineOf(id)).state).toBe('waiting')
    expect(await lease('B')).toMatchObject({ ...id, channel: 'B' })
  })

  test.each(['account', 'registration', 'sequence'] as const)('nothing with the problem %s', async (problem) => {
    await makeChannels('A')
    await makeLine()
    await makeRun('ann')
    await setChannel('A', { problem })
    expect(await lease('A')).toBeUndefined()
    await setChannel('A', { problem: null })
    expect(await lease('A')).toBeDefined()
  })

  test.each(['balance', 'history'] satisfies ChannelProblem[])(
    'only lines of runs with the problem %s',
    async (problem) => {
      await makeChannels('A')
      await makeLine()
      const [run] = await makeRun('ann')
      await setChannel('A', { problem })
      const line = await take('A')
      expect(line).toMatchObject(run ?? {})
      await endLine(relayWith(), line, FAILED)
      expect(await lease('A')).toBeUndefined()
    },
  )

  test('nothing while an operator has paused it, or before it was announced', async () => {
    await makeChannels('A')
    await makeLine()
    await makeRun('ann')
    await setChannel('A', { paused: true })
    expect(await lease('A')).toBeUndefined()
    expect(await lease('B')).toBeUndefined()
    await setChannel('A', { paused: false })
    expect(await lease('A')).toBeDefined()
  })

  test('no line that it had too little for, and none that another channel must pay', async () => {
    await makeChannels('A', 'B', 'C')
    const id = await makeLine()
    const [run] = await makeRun('ann')
    await setLine(id, { unable: ['A', 'B'] })
    expect(await lease('B')).toBeUndefined()
    expect(await lease('A')).toMatchObject(run ?? {})
    expect(await lease('C')).toMatchObject(id)
  })

  test('lines of runs only for a host that can prove them', async () => {
    await makeChannels('A')
    const [run] = await makeRun('ann')
    expect(await lease('A', { canRun: false })).toBeUndefined()
    const id = await makeLine()
    const line = await lease('A', { canRun: false })
    expect(line).toMatchObject(id)
    await endLine(relayWith(), id, FAILED)
    expect(await lease('A', { canRun: true })).toMatchObject(run ?? {})
  })

  test('only lines that are sealed to the key of its host', async () => {
    await makeChannels('A')
    await makeLine('another key')
    expect(await lease('A')).toBeUndefined()
    const own = await makeLine()
    expect(await lease('A')).toMatchObject(own)
  })

  test('nothing while another host has a transfer of it open, and the next line during its own', async () => {
    await makeChannels('A')
    const [, two] = await makeJob(2)
    const line = await take('A')
    const transfer = await record(line)
    const held = { owner: ownerOf(line) }
    expect(await lease('A')).toBeUndefined()
    expect(await lease('A', { held: { ...held, transfer: randomUUID() } })).toBeUndefined()
    expect(await lease('A', { held: { ...held, transfer: transfer.id } })).toMatchObject(two ?? {})
  })

  const leaseAfter = async (status: TransferStatus) => {
    await makeChannels('A', 'B')
    const transfer = await record(await takeNew())
    if (status !== 'open') await settle(transfer, status)
    return await lease('B')
  }
  test.each(['open', 'succeeded', 'unknown'] as const)('no line with a transfer that is %s', async (status) => {
    expect(await leaseAfter(status)).toBeUndefined()
  })
  test.each(['failed', 'expired'] as const)('a line whose transfer has %s', async (status) => {
    expect(await leaseAfter(status)).toMatchObject({ channel: 'B' })
  })

  test('no line before it is due: a doubted one waits', async () => {
    await makeChannels('A')
    const line = await takeNew()
    await leaveLine(relayWith(), line, { because: 'doubted', ledger: 7, seconds: 3_600 })
    expect(await lease('A')).toBeUndefined()
    await setLine(line, { due: NOW })
    expect(await lease('A')).toMatchObject({ ...idOf(line), doubtedLedger: 7 })
  })

  test('nothing while payments are stopped, and what it would have leased once they go on', async () => {
    await makeChannels('A', 'B')
    await makeLine()
    await makeRun('ann')
    await fixture.stop('B')
    expect([await lease('A'), await lease('B')]).toEqual([undefined, undefined])
    await db.delete(paymentStops)
    expect(await lease('A')).toBeDefined()
  })

  test('what it would have leased while payments of another token are stopped', async () => {
    await makeChannels('A')
    await makeLine()
    await db.insert(paymentStops).values({ token: 'another token', since: new Date() })
    expect(await lease('A')).toBeDefined()
  })

  test('nothing once an operator has retired it', async () => {
    await makeChannels('A')
    await makeLine()
    await makeRun('ann')
    await setChannel('A', { retired: true })
    expect(await lease('A')).toBeUndefined()
  })
})

describe('the turns of a channel', () => {
  test('go round the employers, with the users of test funds as one of them', async () => {
    await makeChannels('A')
    await makeJob(2)
    await makeJob(1)
    await makeRun('ann', 2)
    await makeRun('ann')
    await makeRun('bob', 2)
    await makeRun('cy')
    const owners: string[] = []
    for (let turn = 1; turn <= 9; turn += 1) owners.push(await payNext(turn))
    expect(owners).toEqual(['', 'ann', 'bob', 'cy', '', 'ann', 'bob', '', 'ann'])
    expect(await lease('A')).toBeUndefined()
  })

  test('begin with the owner that has waited longest for a payment, even if others are due earlier', async () => {
    await makeChannels('A')
    const late: LineId[] = []
    for (const owner of ['ann', 'bob', 'cy']) {
      await makeRun(owner)
      await payNext({ ann: 2, bob: 1, cy: 3 }[owner] ?? 0)
    }
    for (const owner of ['ann', 'bob', 'cy']) late.push(...(await makeRun(owner)))
    for (const [index, line] of late.entries()) await setLine(line, { due: new Date(NOW.getTime() + index * 1000) })
    expect([await payNext(4), await payNext(5), await payNext(6)]).toEqual(['bob', 'ann', 'cy'])
  })

  test('end with the owner whose transfer is open', async () => {
    await makeChannels('A')
    await makeRun('bob')
    await payNext(1)
    await makeRun('ann', 2)
    await makeRun('bob')
    const first = await take('A')
    expect(first.quotaAccount).toBe('ann')
    const held = { transfer: (await record(first)).id, owner: ownerOf(first) }
    const second = await lease('A', { held })
    expect(second?.quotaAccount).toBe('bob')
    if (second) await endLine(relayWith(), second, FAILED)
    expect((await lease('A', { held }))?.quotaAccount).toBe('ann')
  })

  test('pass over owners whose lines are not due', async () => {
    await makeChannels('A')
    const [waiting] = await makeRun('ann')
    await makeRun('bob')
    if (waiting) await setLine(waiting, { due: new Date(Date.now() + DAY_MS) })
    expect((await take('A')).quotaAccount).toBe('bob')
  })
})

describe('work is waiting for a host', () => {
  const isWaiting = () => isWorkWaiting(relayWith('A', 'B'))

  test('if a line is due that one of its channels may pay', async () => {
    await makeChannels('A', 'B')
    expect(await isWaiting()).toBe(false)
    await makeLine('another key')
    await fixture.makeRun('ann', ['C'])
    expect(await isWaiting()).toBe(false)
    const [run] = await makeRun('ann')
    expect(await isWaiting()).toBe(true)
    if (run) await endLine(relayWith(), run, FAILED)
    expect(await isWaiting()).toBe(false)
    await makeLine()
    expect(await isWaiting()).toBe(true)
  })

  test('but not while a line is in doubt, or its transfer is open', async () => {
    await makeChannels('A', 'B')
    const line = await takeNew()
    await leaveLine(relayWith(), line, { because: 'doubted', ledger: 7, seconds: 60 })
    expect(await isWaiting()).toBe(false)
    const transfer = await record({ ...line, channel: 'A' })
    expect(await isWaiting()).toBe(false)
    await settle(transfer, 'expired')
    expect(await isWaiting()).toBe(true)
  })
})

test('two hosts with the same seeds lease each line until it ends, and none twice at once', async ({ signal }) => {
  const names = ['A', 'B', 'C']
  await makeChannels(...names)
  // PGlite has one connection, so its hosts never do anything at the same time.
  const lines = await makeJob(inject('postgres') ? 500 : 50)
  const held = new Map<string, string>()
  const ended = new Set<string>()
  const twice: string[] = []
  let leases = 0
  const serve = async (channel: string, host: number) => {
    while (ended.size < lines.length && !signal.aborted) {
      const line = await lease(channel)
      if (!line) continue
      leases += 1
      const name = String(line.position)
      const other = held.get(name)
      if (other !== undefined || ended.has(name)) twice.push(`${name}: host ${host}, ${channel}, and ${other}`)
      held.set(name, channel)
      const ends = line.failures > 0
      held.delete(name)
      if (ends) {
        ended.add(name)
        if (!(await endLine(relayWith(), line, FAILED))) twice.push(`${name} has ended before`)
      } else {
        await setLine(line, { failures: 1 })
        await leaveLine(relayWith(), line, { because: 'left' })
      }
    }
  }
  await Promise.all([1, 2].flatMap((host) => names.map((channel) => serve(channel, host))))
  expect(twice).toEqual([])
  expect(leases).toBe(2 * lines.length)
  const job = lines[0]?.job ?? ''
  expect(await jobOf(job)).toMatchObject({ status: 'failed', error: 'transfer 0: the transfer would fail' })
})

describe('a lease', () => {
  /** Leases a line with a short lease. */
  async function leaseShortly(longestLease: number) {
    await makeChannels('A')
    await makeLine()
    const relay = { ...relayWith('A'), times: { ...RELAY_TIMES, lease: 0.6, longestLease } }
    const line = await leaseLine(relay, channelAt('A'), { held: undefined, canRun: true })
    if (!line) throw new Error('no line')
    return { relay, line }
  }
  const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
  const stateOf = async (line: LineId) => (await lineOf(line)).state

  test('lasts while it is prolonged', async () => {
    const { relay, line } = await leaseShortly(60)
    const stop = keepLease(relay, line)
    try {
      for (let time = 0; time < 10; time += 1) {
        await pause(200)
        expect(await stateOf(line)).toBe('preparing')
      }
    } finally {
      stop()
    }
    await expect.poll(() => stateOf(line)).toBe('waiting')
  })

  test('ends when its host makes no progress', async () => {
    const { relay, line } = await leaseShortly(1)
    const stop = keepLease(relay, line)
    try {
      await expect.poll(() => stateOf(line)).toBe('waiting')
      await pause(800)
      expect(await stateOf(line)).toBe('waiting')
    } finally {
      stop()
    }
  })

  test('ends when its host closes', async () => {
    const { relay, line } = await leaseShortly(60)
    const stop = keepLease({ ...relay, signal: AbortSignal.abort() }, line)
    await expect.poll(() => stateOf(line)).toBe('waiting')
    await pause(800)
    expect(await stateOf(line)).toBe('waiting')
    stop()
  })

  test('is not prolonged once the line was left', async () => {
    const { relay, line } = await leaseShortly(60)
    const stop = keepLease(relay, line)
    await leaveLine(relay, line, { because: 'left' })
    await pause(800)
    expect(await lineOf(line)).toMatchObject({ state: 'waiting', leasedUntil: null })
    stop()
  })

  test('that has lapsed neither prolongs nor ends the lease of the next channel', async () => {
    const { relay, line } = await leaseShortly(60)
    await setChannel('A', { address: 'B' })
    await expireLeases(db)
    const other = await take('B')
    const stop = keepLease({ ...relay, times: { ...relay.times, lease: 0.3 } }, line)
    await pause(500)
    stop()
    await leaveLine(relay, line, { because: 'doubted', ledger: 7, seconds: 60 })
    expect(await lineOf(line)).toMatchObject({
      channel: 'B',
      leasedUntil: other.leasedUntil,
      doubtedLedger: null,
      due: other.due,
    })
  })
})

describe('a line that is left', () => {
  const leave = async (leaving: Parameters<typeof leaveLine>[2], unable: string[] = []) => {
    await makeChannels('A', 'B')
    const id = await makeLine()
    await setLine(id, { unable })
    await leaveLine(relayWith(), await take(unable.includes('A') ? 'B' : 'A'), leaving)
    return await lineOf(id)
  }
  /** In how many seconds a line is due. */
  const dueIn = ({ due }: { due: Date }) => (due.getTime() - Date.now()) / 1000

  test('may be leased at once', async () => {
    expect(await leave({ because: 'left' })).toMatchObject({ leasedUntil: null, due: NOW, unable: [] })
    expect(await lease('A')).toBeDefined()
  })

  test('is not leased again by the channel that has too little for it', async () => {
    expect(await leave({ because: 'balance-short' }, ['A'])).toMatchObject({ unable: ['A', 'B'], due: NOW })
  })

  test('is due after a pause if another transfer may pay it', async () => {
    const line = await leave({ because: 'busy', seconds: 100 }, ['A'])
    expect(line).toMatchObject({ unable: ['A'], doubtedLedger: null })
    expect(dueIn(line)).toBeCloseTo(100, -1)
  })

  test('is tried again on every channel if it is doubted', async () => {
    const line = await leave({ because: 'doubted', ledger: 9, seconds: 100 }, ['A'])
    expect(line).toMatchObject({ unable: [], doubtedLedger: 9 })
    expect(dueIn(line)).toBeCloseTo(100, -1)
  })
})
