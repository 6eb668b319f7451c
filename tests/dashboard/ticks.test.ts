import { expect, test } from 'vitest'
import { secondsLabel, ticksOf } from '#app/(operator)/overview/chart.tsx'

test.each([
  [1, [0, 1, 2]],
  [2, [0, 1, 2]],
  [3, [0, 1, 2, 3]],
  [7, [0, 5, 10]],
  [11, [0, 5, 10, 15]],
  [4978, [0, 2000, 4000, 6000]],
])('divides an axis up to %i into round counts', (most, ticks) => {
  expect(ticksOf(most, 'count')).toEqual(ticks)
})

test.each([
  [0.3, ['0 s', '0.1 s', '0.2 s', '0.3 s']],
  [5.7, ['0 s', '2 s', '4 s', '6 s']],
  [75, ['0 s', '30 s', '1 min', '1.5 min']],
  [330, ['0 s', '2 min', '4 min', '6 min']],
  [5000, ['0 s', '30 min', '1 h', '1.5 h']],
])('divides an axis up to %d seconds into round times', (most, labels) => {
  expect(ticksOf(most, 'seconds').map(secondsLabel)).toEqual(labels)
})

test('has three or four ticks that reach every value', () => {
  for (const of of ['count', 'seconds'] as const) {
    for (let most = 1; most < 100_000; most = Math.ceil(most * 1.1)) {
      const ticks = ticksOf(most, of)
      expect([3, 4]).toContain(ticks.length)
      expect(ticks.at(-1)).toBeGreaterThanOrEqual(most)
    }
  }
})
