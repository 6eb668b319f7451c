import { expect, test } from 'vitest'
import { MIN_HEIGHT, stackHeights } from '#app/(operator)/overview/traffic-chart.tsx'

const sum = (heights: readonly number[]) => heights.reduce((total, height) => total + height, 0)

test('draws each non-zero segment, and the highest bar at full height', () => {
  const heights = stackHeights([4978, 0, 22], 100 / 5000)
  expect(heights[2]).toBeGreaterThanOrEqual(MIN_HEIGHT)
  expect(heights[1]).toBe(0)
  expect(sum(heights)).toBeCloseTo(100)
})

test('raises only bars that are lower than their smallest visible height', () => {
  expect(stackHeights([1, 1, 1], 0.02)).toEqual([MIN_HEIGHT, MIN_HEIGHT, MIN_HEIGHT])
  expect(sum(stackHeights([300, 20, 1], 0.1))).toBeCloseTo(32.1)
  expect(stackHeights([40, 0, 0], 1)).toEqual([40, 0, 0])
  expect(stackHeights([0, 0, 0], 1)).toEqual([0, 0, 0])
})
