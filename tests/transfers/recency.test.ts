import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { openRecency, type Recency } from '#lib/transfers/recency.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

/** Has ledgers `from` to `to` close every `seconds`, each seen at once. */
function closeLedgers(recency: Recency, { from, to, seconds }: { from: number; to: number; seconds: number }): void {
  for (let ledger = from; ledger <= to; ledger += 1) {
    vi.advanceTimersByTime(seconds * 1000)
    recency.observeRound(ledger, 1_000_000 + ledger * seconds)
  }
}

describe('the next ledger', () => {
  test('is due a little before the interval of the last ones is over', () => {
    const recency = openRecency(() => 0)
    closeLedgers(recency, { from: 100, to: 110, seconds: 5 })
    expect(recency.dueIn()).toBeCloseTo(4_850)
    vi.advanceTimersByTime(1_000)
    recency.observe(110, 1_000_550)
    expect(recency.dueIn()).toBeCloseTo(3_850)
    vi.advanceTimersByTime(60_000)
    expect(recency.dueIn()).toBe(0)
  })

  test('is due at once if a response outside a round has shown it', () => {
    const recency = openRecency(() => 0)
    closeLedgers(recency, { from: 100, to: 110, seconds: 5 })
    expect(recency.dueIn()).toBeGreaterThan(0)
    recency.observe(111, 1_000_555)
    expect(recency.dueIn()).toBe(0)
    recency.observeRound(111, 1_000_555)
    expect(recency.dueIn()).toBeGreaterThan(0)
  })

  test('may be due at any time before the pace is known, and after the network was reset', () => {
    const recency = openRecency(() => 0)
    expect(recency.dueIn()).toBe(0)
    closeLedgers(recency, { from: 100, to: 107, seconds: 5 })
    expect(recency.dueIn()).toBe(0)
    closeLedgers(recency, { from: 108, to: 112, seconds: 5 })
    expect(recency.dueIn()).toBeGreaterThan(0)
    recency.observeRound(3, 2_000_000)
    expect(recency.dueIn()).toBe(0)
  })

  test('is awaited for five seconds at most, however slow the network is', () => {
    const recency = openRecency(() => 0)
    closeLedgers(recency, { from: 100, to: 120, seconds: 60 })
    expect(recency.dueIn()).toBe(5_000)
  })
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
