import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { openRecency, type Recency, strideOf } from '#lib/transfers/recency.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

const SECONDS = 5

/** A network whose ledgers close every five seconds, at the moments 0, 5, 10 … s of the fake clock. */
const visibleAt = (ms: number) => Math.floor(ms / (SECONDS * 1000))

/** A look at the latest ledger, as a round makes it. */
function look(recency: Recency, ms: number): void {
  vi.advanceTimersByTime(Math.max(0, ms - performance.now()))
  const ledger = visibleAt(performance.now())
  recency.observeRound(100 + ledger, 1_000_000 + ledger * SECONDS)
}

/** How late (ms) the first look at a new ledger is, and how many looks that takes, if each is made when it is due. */
function awaitNext(recency: Recency, pollMs: number): { late: number; looks: number } {
  const next = visibleAt(performance.now()) + 1
  for (let looks = 1; ; looks += 1) {
    vi.advanceTimersByTime(pollMs)
    look(recency, performance.now() + recency.dueIn())
    if (visibleAt(performance.now()) >= next) return { late: performance.now() - next * SECONDS * 1000, looks }
  }
}

describe('the next ledger', () => {
  test('is seen within half a second by a process that looks at single ledgers, each a while after it closed', () => {
    const recency = openRecency(() => 0)
    // Payments 6 to 11 s apart, whose requests see the latest ledger at any moment of it.
    let lates: number[] = []
    let at = 1_300
    for (let payment = 0; payment < 20; payment += 1) {
      look(recency, at)
      const { late } = awaitNext(recency, 250)
      lates = [...lates, late]
      at = performance.now() + 6_000 + ((payment * 1_700) % 5_000)
    }
    expect(Math.max(...lates.slice(-10))).toBeLessThan(500)
  })

  test('takes one look per ledger once it is known when they become visible', () => {
    const recency = openRecency(() => 0)
    look(recency, 2_100)
    const awaited = Array.from({ length: 20 }, () => awaitNext(recency, 250))
    expect(awaited.slice(-5).map(({ looks }) => looks)).toEqual([1, 1, 1, 1, 1])
    expect(Math.max(...awaited.slice(-5).map(({ late }) => late))).toBeLessThan(500)
  })

  test('is due at once if a response outside a round has shown it', () => {
    const recency = openRecency(() => 0)
    for (let ledger = 0; ledger < 12; ledger += 1) look(recency, ledger * 5_000 + 100)
    expect(recency.dueIn()).toBeGreaterThan(0)
    recency.observe(112, 1_000_060)
    expect(recency.dueIn()).toBe(0)
    recency.observeRound(112, 1_000_060)
    expect(recency.dueIn()).toBeGreaterThan(0)
  })

  test('may be due at any time before the pace is known, and after the network was reset', () => {
    const recency = openRecency(() => 0)
    expect(recency.dueIn()).toBe(0)
    for (let ledger = 0; ledger < 8; ledger += 1) look(recency, ledger * 5_000 + 100)
    expect(recency.dueIn()).toBe(0)
    for (let ledger = 8; ledger < 12; ledger += 1) look(recency, ledger * 5_000 + 100)
    expect(recency.dueIn()).toBeGreaterThan(0)
    recency.observeRound(3, 2_000_000)
    expect(recency.dueIn()).toBe(0)
  })

  test('is awaited for five seconds at most, however slow the network is', () => {
    const recency = openRecency(() => 0)
    for (let ledger = 100; ledger <= 120; ledger += 1) {
      vi.advanceTimersByTime(60_000)
      recency.observeRound(ledger, 1_000_000 + ledger * 60)
    }
    expect(recency.dueIn()).toBe(5_000)
  })
})

test('a transfer is looked up in each of its first ledgers, and later in every third', () => {
  expect([0, 1, 3, 4, 7, 8, 100].map(strideOf)).toEqual([1, 1, 1, 2, 2, 3, 3])
})

test('a response is recent only for a moment, even if the clock was set back', () => {
  let now = 1_000_000_000
  const recency = openRecency(() => now)
  expect(recency.isCurrent()).toBe(false)
  recency.observe(100, 1_000)
  expect(recency.isCurrent()).toBe(true)
  for (const passed of [2_000, -3_600_000]) {
    now = 1_000_000_000 + passed
    expect(recency.isCurrent()).toBe(false)
  }
})
