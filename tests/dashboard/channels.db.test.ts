import { eq } from 'drizzle-orm'
import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Channels } from '#app/(operator)/jobs/channels.tsx'
import { auditLog } from '#drizzle/schema/audit.ts'
import { paymentStops, relayChannels } from '#drizzle/schema/relay.ts'
import { insertRows, itemRow, jobRow, transferRow } from '#lib/cli/seed/rows.ts'
import { channelState, listChannels } from '#lib/dashboard/channels.ts'
import type { Database } from '#lib/db/connection.ts'
import { changeChannel, readRelayState } from '#lib/relay/channel-state.ts'
import { cloneDatabase } from '../support/database.ts'

const NOW = new Date('2026-11-20T12:30:00Z')
const TOKEN = 'C'
const before = (seconds: number) => new Date(NOW.getTime() - seconds * 1000)
/** Leases are compared with the database's clock. */
const FUTURE = new Date('2100-01-01')

let clone: Awaited<ReturnType<typeof cloneDatabase>>
let db: Database
beforeAll(async () => {
  clone = await cloneDatabase()
  db = await clone.store.database()
  await db.insert(relayChannels).values([
    { token: TOKEN, address: 'GFREE', seenAt: before(59) },
    { token: TOKEN, address: 'GSHORT', seenAt: before(1), problem: 'balance' },
    { token: TOKEN, address: 'GBUSY', seenAt: before(1) },
    { token: TOKEN, address: 'GPAYING', seenAt: before(1) },
    { token: TOKEN, address: 'GDIED', seenAt: before(1) },
    { token: TOKEN, address: 'GPAUSED', seenAt: before(1), paused: true },
    { token: TOKEN, address: 'GGONE', seenAt: before(60) },
    { token: TOKEN, address: 'GGONE, short', seenAt: before(86_400), problem: 'balance' },
    { token: TOKEN, address: 'GGONE, with a line', seenAt: before(61) },
    { token: 'another', address: 'GELSEWHERE', seenAt: before(1) },
  ])
  const job = jobRow({ createdAt: NOW })
  const { id } = job
  const leases = { GBUSY: FUTURE, GPAYING: FUTURE, GDIED: before(1), 'GGONE, with a line': FUTURE }
  const items = Object.entries(leases).map(([channel, leasedUntil], position) =>
    itemRow({ job: id, position, channel, leasedUntil, queuedAt: NOW }),
  )
  const sent = itemRow({ job: id, position: items.length, channel: 'GPAYING', queuedAt: NOW })
  const open = transferRow({ account: 'GPAYING', lineJob: id, linePosition: sent.position, createdAt: NOW })
  await insertRows(db, { jobs: [job], items: [...items, sent], transfers: [open] })
  const transfers = [900, 300, 600].map((ago) => {
    const times = { createdAt: before(ago), settledAt: before(ago - 5) }
    return transferRow({ recipient: 'GFREE', status: 'succeeded', hash: `${ago}`, ...times })
  })
  await insertRows(db, { transfers })
})
afterAll(() => clone.drop())

test('shows a channel as not running after a minute without a report, even with a line or a problem', async () => {
  const channels = await listChannels(db, TOKEN, NOW)
  const shown = channels.map((channel) => {
    const html = renderToStaticMarkup(createElement(Channels, { channels: [channel], network: 'local', now: NOW }))
    return [channel.address, />(Free|Problem|Paused|Building|Paying|Not running)</.exec(html)?.[1]]
  })
  expect(new Map(shown as [string, string][])).toEqual(
    new Map([
      ['GBUSY', 'Building'],
      ['GDIED', 'Free'],
      ['GFREE', 'Free'],
      ['GGONE', 'Not running'],
      ['GGONE, short', 'Not running'],
      ['GGONE, with a line', 'Not running'],
      ['GPAUSED', 'Paused'],
      ['GPAYING', 'Paying'],
      ['GSHORT', 'Problem'],
    ]),
  )
  // The relay's readiness counts the same channels.
  expect((await readRelayState(db, TOKEN, NOW)).channels).toBe(channels.filter(({ isRunning }) => isRunning).length)
})

test('pauses and resumes a channel, and audits who made each change, and why', async () => {
  const address = 'GELSEWHERE'
  const actor = { kind: 'operator', sub: 'Ada' } as const
  const pause = (isPaused: boolean, token = 'another') =>
    changeChannel(
      { db, now: NOW, actor },
      { token, address, change: isPaused ? 'paused' : 'resumed', note: 'a new key' },
    )
  const isPaused = async () => {
    const [row] = await db.select().from(relayChannels).where(eq(relayChannels.address, address))
    return row?.paused
  }
  expect([await pause(true, TOKEN), await pause(false), await isPaused()]).toEqual([false, false, false])
  expect([await pause(true), await isPaused(), await pause(true)]).toEqual([true, true, false])
  expect([await pause(false), await isPaused()]).toEqual([true, false])
  const entries = await db.select().from(auditLog).where(eq(auditLog.subjectId, address)).orderBy(auditLog.sequence)
  const entry = { actorKind: 'operator', actorSub: 'Ada', detail: { note: 'a new key' } }
  expect(entries).toMatchObject([
    { ...entry, action: 'channel.paused' },
    { ...entry, action: 'channel.resumed' },
  ])
})

test('notes since when a channel has had its problem', async () => {
  const isElsewhere = eq(relayChannels.address, 'GELSEWHERE')
  const give = async (problem: 'balance' | 'account' | null) => {
    await db.update(relayChannels).set({ problem, seenAt: NOW }).where(isElsewhere)
    const [channel] = await listChannels(db, 'another', NOW)
    return channel?.problemSince ?? null
  }
  expect(await give(null)).toBeNull()
  const since = await give('balance')
  expect(since).toBeInstanceOf(Date)
  expect(await give('balance')).toEqual(since)
  await expect.poll(async () => ((await give('account')) ?? 0) > (since ?? 0)).toBe(true)
  expect(await give(null)).toBeNull()
})

test('shows when a channel last received USDC, with the transaction as proof', async () => {
  const channels = await listChannels(db, TOKEN, NOW)
  const received = channels.filter(({ receivedAt }) => receivedAt)
  expect(received).toMatchObject([{ address: 'GFREE', receivedAt: before(295), receivedHash: '300' }])
  const html = renderToStaticMarkup(createElement(Channels, { channels: received, network: 'local', now: NOW }))
  expect(html).toMatch(/last received .*4 min.* ago.*href="\/ledger\/300"/)
})

test.each([
  [{ reconcileProblem: 'history-gap' }, /It keeps payments stopped: neither the RPC nor an archive has all its events/],
  [
    { reconciledStop: NOW, hasUnknownPurpose: true },
    /It keeps payments stopped: it has paid from an escrow for a payout that this database does not have/,
  ],
  [{ reconciledStop: NOW }, /^(?!.*keeps payments stopped)/],
] as const)('shows why a channel keeps payments stopped: %j', async (columns, words) => {
  const reconciled = { reconcileProblem: null, reconciledStop: null, hasUnknownPurpose: false, ...columns }
  await db.update(relayChannels).set(reconciled).where(eq(relayChannels.address, 'GELSEWHERE'))
  await db.insert(paymentStops).values({ token: 'another', since: NOW })
  const channels = await listChannels(db, 'another', NOW)
  const html = renderToStaticMarkup(createElement(Channels, { channels, network: 'local', now: NOW }))
  await db.delete(paymentStops)
  expect(html.replace(/<[^>]+>/g, '')).toMatch(words)
})

test('shows no channel as free while payments are stopped', async () => {
  const statesOf = async () => (await listChannels(db, 'another', NOW)).map(channelState)
  expect(await statesOf()).toEqual(['free'])
  for (const stop of [{ since: NOW }, { foreignSince: NOW }]) {
    await db.insert(paymentStops).values({ token: 'another', ...stop })
    expect(await statesOf()).toEqual(['halted'])
    await db.delete(paymentStops)
  }
})

test('offers to retire a paused channel, and nothing for a retired one', async () => {
  const textOf = async (changes: { paused?: boolean; retired?: boolean }) => {
    await db.update(relayChannels).set(changes).where(eq(relayChannels.address, 'GELSEWHERE'))
    const channels = await listChannels(db, 'another', NOW)
    const html = renderToStaticMarkup(createElement(Channels, { channels, network: 'local', now: NOW }))
    return html.replace(/<[^>]+>/g, ' ')
  }
  expect(await textOf({ paused: false })).not.toMatch(/Retire for ever/)
  expect(await textOf({ paused: true })).toMatch(/Resume.*Retire for ever/)
  const retired = await textOf({ retired: true })
  expect(retired).toMatch(/Retired/)
  expect(retired).not.toMatch(/Resume|Pause|Retire for ever/)
})
