import { expect, test } from 'vitest'
import { exposeMetrics } from '#lib/observability/metrics.ts'
import { readExposition } from './exposition.ts'

test('adds external families to the counters of the process', async () => {
  const text = await exposeMetrics([
    { name: 'a_total', help: 'A description.', type: 'counter', samples: [{ labels: { part: 'x' }, value: 3 }] },
    {
      name: 'h',
      help: 'A histogram.',
      type: 'histogram',
      samples: [
        { labels: { le: '+Inf' }, value: 5, suffix: '_bucket' },
        { labels: {}, value: 12.5, suffix: '_sum' },
        { labels: {}, value: 5, suffix: '_count' },
      ],
    },
  ])
  const { types, samples } = readExposition(text)
  expect([types.get('a_total'), samples.get('a_total{part="x"}')]).toEqual(['counter', 3])
  expect([samples.get('h_bucket{le="+Inf"}'), samples.get('h_sum'), samples.get('h_count')]).toEqual([5, 12.5, 5])
  expect(samples.get('process_resident_memory_bytes')).toBeGreaterThan(1_000_000)
  expect(types.has('payroll_http_requests_total')).toBe(true)
})

test('escapes quotes, backslashes and line ends in a label', async () => {
  const labels = { route: '"} 1\nforged 2 \\' }
  const text = await exposeMetrics([{ name: 'a', help: 'A.', type: 'gauge', samples: [{ labels, value: 0.5 }] }])
  expect(text).toContain('a{route="\\"} 1\\nforged 2 \\\\"} 0.5\n')
})
