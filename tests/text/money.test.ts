import { describe, expect, test } from 'vitest'
import { formatUnits, parseUnits } from '#lib/text/money.ts'

test.each([
  [0n, '0.0000000'],
  [1n, '0.0000001'],
  [12n, '0.0000012'],
  [9_999_999n, '0.9999999'],
  [10_000_000n, '1.0000000'],
  [9_223_372_036_854_775_807n, '922337203685.4775807'],
  [2n ** 127n - 1n, '17014118346046923173168730371588.4105727'],
  [-1n, '-0.0000001'],
  [-15_000_000n, '-1.5000000'],
])('formats %s base units as %s', (units, decimal) => {
  expect(formatUnits(units)).toBe(decimal)
})

describe('parsing', () => {
  test.each([
    ['0', 0n],
    ['1', 10_000_000n],
    ['1.5', 15_000_000n],
    ['0.0000001', 1n],
    ['007.10', 71_000_000n],
    ['922337203685.4775807', 9_223_372_036_854_775_807n],
  ])('%s', (decimal, units) => {
    expect(parseUnits(decimal)).toBe(units)
    expect(parseUnits(formatUnits(units))).toBe(units)
  })

  test.each([
    '',
    ' 1',
    '1 ',
    '1.',
    '.5',
    '-1',
    '+1',
    '1e3',
    '1,5',
    '0x10',
    '1.00000001',
    '1_000',
    '１',
    '1\n',
    '1'.repeat(31),
    'NaN',
  ])('rejects the amount %j', (decimal) => {
    expect(() => parseUnits(decimal)).toThrowError(RangeError)
  })
})
