import { expect, test } from 'vitest'
import { covers, firstGap, joinRanges, splitAt } from '#lib/archive/ranges.ts'

const range = (fromLedger: number, throughLedger: number) => ({ fromLedger, throughLedger })

test.each([
  ['inside', [5, 7], [range(1, 4), range(6, 6), range(8, 9)]],
  ['at both ends', [9, 1], [range(2, 8)]],
  ['outside', [0, 10], [range(1, 9)]],
  ['all of it', [1, 2, 3, 4, 5, 6, 7, 8, 9], []],
] as const)('splits a range at ledgers: %s', (_, without, parts) => {
  expect(splitAt(range(1, 9), new Set(without))).toEqual(parts)
})

test('joins ranges that touch or overlap', () => {
  expect(joinRanges([range(7, 9), range(1, 3), range(4, 5), range(2, 4)])).toEqual([range(1, 5), range(7, 9)])
})

test('finds the first ledger that no range covers, and the end of the gap', () => {
  const ranges = [range(1, 3), range(6, 9)]
  expect(firstGap(ranges, 1)).toEqual({ from: 4, before: 6 })
  expect(firstGap(ranges, 7)).toEqual({ from: 10, before: undefined })
  expect([covers(ranges, 1, 3), covers(ranges, 1, 4), covers(ranges, 5, 4)]).toEqual([true, false, true])
})
