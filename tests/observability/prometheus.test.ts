import { expect, test } from 'vitest'
import { distributionSamples, formatFamilies } from '#lib/observability/prometheus.ts'
import { readExposition } from './exposition.ts'

test('families, their samples, and nothing of one that has none', () => {
  const text = formatFamilies([
    { name: 'a_total', help: 'What\nis \\ counted.', type: 'counter', samples: [{ labels: {}, value: 3 }] },
    { name: 'b', help: 'Nothing.', type: 'gauge', samples: [] },
  ])
  expect(text).toBe('# HELP a_total What\\nis \\\\ counted.\n# TYPE a_total counter\na_total 3\n')
})

test('a label keeps quotes, backslashes and line ends to itself', () => {
  const labels = { route: '"} 1\nforged 2 \\' }
  const text = formatFamilies([{ name: 'a', help: 'A.', type: 'gauge', samples: [{ labels, value: 0.5 }] }])
  expect(text).toContain('a{route="\\"} 1\\nforged 2 \\\\"} 0.5\n')
  expect(readExposition(text).samples.size).toBe(1)
})

test('buckets of a histogram add up, and the last one is everything', () => {
  const samples = distributionSamples({ route: '/' }, { bounds: [0.5, 1], counts: [2, 0, 3], sum: 12.5 })
  const text = formatFamilies([{ name: 'h', help: 'H.', type: 'histogram', samples }])
  expect([...readExposition(text).samples]).toEqual([
    ['h_bucket{route="/",le="0.5"}', 2],
    ['h_bucket{route="/",le="1"}', 2],
    ['h_bucket{route="/",le="+Inf"}', 5],
    ['h_sum{route="/"}', 12.5],
    ['h_count{route="/"}', 5],
  ])
})
