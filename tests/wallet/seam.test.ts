import { expect, test } from 'vitest'
import { limitsOf } from '#lib/wallet/events.ts'

test.each([
  ['all events of a young ledger, half of them from an archive that lags', [1, 78], { floor: 3, seam: 39 }],
  ['the margin above the oldest ledger of a long history', [10_000, 130_960], { floor: 10_002, seam: 10_100 }],
  ['the only ledger there is', [2, 2], { floor: 2, seam: 2 }],
])('reads %s', (_, [oldestLedger = 0, latestLedger = 0], limits) => {
  expect(limitsOf({ oldestLedger, latestLedger })).toEqual(limits)
})
