import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { LedgerView } from '#lib/stellar/view.ts'
import { strideOf } from '#lib/transfers/resubmit.ts'
import { silentView } from '../support/silent-view.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

const SECONDS = 5

/** A network whose ledgers close every five seconds, at the moments 0, 5, 10 … s of the fake clock. */
const visibleAt = (ms: number) => Math.floor(ms / (SECONDS * 1000))

/** A round that looks transfers up as of a ledger. */
function lookAt(view: LedgerView, ledger: number, closedAt: number): void {
  view.observe(ledger, closedAt)
  view.lookedUp(ledger)
}

/** A look at the latest ledger, as a round makes it. */
function look(view: LedgerView, ms: number): void {
  vi.advanceTimersByTime(Math.max(0, ms - performance.now()))
  const ledger = visibleAt(performance.now())
  lookAt(view, 100 + ledger, 1_000_000 + ledger * SECONDS)
}

/** How late (ms) the first look at a new ledger is, and how many looks that takes, if each is made when it is due. */
function awaitNext(view: LedgerView, pollMs: number): { late: number; looks: number } {
  const next = visibleAt(performance.now()) + 1
  for (let looks = 1; ; looks += 1) {
    vi.advanceTimersByTime(pollMs)
    look(view, performance.now() + view.dueIn())
    if (visibleAt(performance.now()) >= next) return { late: performance.now() - next * SECONDS * 1000, looks }
  }
}

describe('the next ledger', () => {
  test('is seen within half a second by a process that looks at single ledgers, each a while after it closed', () => {
    const view = silentView()
    // Payments 6 to 11 s apart, whose requests see the latest ledger at any moment of it.
    let lates: number[] = []
    let at = 1_300
    for (let payment = 0; payment < 20; payment += 1) {
      look(view, at)
      const { late } = awaitNext(view, 250)
      lates = [...lates, late]
      at = performance.now() + 6_000 + ((payment * 1_700) % 5_000)
    }
    expect(Math.max(...lates.slice(-10))).toBeLessThan(500)
  })

  test('takes one look per ledger once it is known when they become visible', () => {
    const view = silentView()
    look(view, 2_100)
    const awaited = Array.from({ length: 20 }, () => awaitNext(view, 250))
    expect(awaited.slice(-5).map(({ looks }) => looks)).toEqual([1, 1, 1, 1, 1])
    expect(Math.max(...awaited.slice(-5).map(({ late }) => late))).toBeLessThan(500)
  })

  test('is due at once if a response outside a round has shown it', () => {
    const view = silentView()
    for (let ledger = 0; ledger < 12; ledger += 1) look(view, ledger * 5_000 + 100)
    expect(view.dueIn()).toBeGreaterThan(0)
    view.observe(112, 1_000_060)
    expect(view.dueIn()).toBe(0)
    lookAt(view, 112, 1_000_060)
    expect(view.dueIn()).toBeGreaterThan(0)
  })

  test('may be due at any time before the pace is known, and after the network was reset', () => {
    const view = silentView()
    expect(view.dueIn()).toBe(0)
    for (let ledger = 0; ledger < 8; ledger += 1) look(view, ledger * 5_000 + 100)
    expect(view.dueIn()).toBe(0)
    for (let ledger = 8; ledger < 12; ledger += 1) look(view, ledger * 5_000 + 100)
    expect(view.dueIn()).toBeGreaterThan(0)
    lookAt(view, 3, 2_000_000)
    expect(view.dueIn()).toBe(0)
  })

  test('is awaited for five seconds at most, however slow the network is', () => {
    const view = silentView()
    for (let ledger = 100; ledger <= 120; ledger += 1) {
      vi.advanceTimersByTime(60_000)
      lookAt(view, ledger, 1_000_000 + ledger * 60)
    }
    expect(view.dueIn()).toBe(5_000)
  })
})

test('a transfer is looked up in each of its first ledgers, and later in every third', () => {
  expect([0, 1, 3, 4, 7, 8, 100].map(strideOf)).toEqual([1, 1, 1, 2, 2, 3, 3])
})

test('a response is recent only for a moment', () => {
  const view = silentView()
  expect(view.isCurrent()).toBe(false)
  view.observe(100, 1_000)
  expect(view.isCurrent()).toBe(true)
  vi.advanceTimersByTime(2_000)
  expect(view.isCurrent()).toBe(false)
})

test('the time goes on from the freshest ledger, and falls back with the network', () => {
  const view = silentView()
  expect(view.offsetSeconds()).toBeUndefined()
  view.observe(100, 1_000)
  vi.advanceTimersByTime(4_000)
  // This ledger was seen late.
  view.observe(101, 1_003)
  vi.advanceTimersByTime(1_000)
  expect(view.now()).toBe(1_005_000)
  view.observe(7, 500)
  vi.advanceTimersByTime(31_000)
  view.observe(7, 500)
  expect(view.now()).toBe(500_000)
})

test('the pace is known after some ledgers', () => {
  const view = silentView()
  for (let ledger = 0; ledger < 8; ledger += 1) view.observe(100 + ledger, 1_000 + ledger * 20)
  expect(view.secondsPerLedger()).toBeUndefined()
  view.observe(108, 1_160)
  expect(view.secondsPerLedger()).toBe(20)
})

test.each([
  ['number', [2_000_000_000, 1_001]],
  ['time', [101, 9_000_000]],
] as const)(
  'one response whose %s is of the far future changes nothing, a second one in a row does',
  (_, [ledger, closedAt]) => {
    const view = silentView()
    view.observe(100, 1_000)
    view.observe(ledger, closedAt)
    expect([view.latestLedger(), view.now()]).toEqual([100, 1_000_000])
    view.observe(101, 1_001)
    view.observe(ledger, closedAt)
    expect(view.latestLedger()).toBe(101)
    view.observe(ledger, closedAt)
    expect(view.latestLedger()).toBe(ledger)
  },
)
