import { expect, test } from 'vitest'
import { closingLines } from '#lib/cli/demo/payroll.ts'

test('reports every promise for a complete demo', () => {
  expect(closingLines({ failures: [], skipped: [] })).toEqual([expect.stringMatching(/^All as promised/)])
})

test('names the parts that a demo skipped, and does not report every promise', () => {
  const lines = closingLines({ failures: [], skipped: ['the batch of the relay (batch execution is off)'] })
  expect(lines[0]).toBe('SKIPPED: the batch of the relay (batch execution is off)')
  expect(lines.join()).not.toMatch(/all as promised/i)
})

test('reports no promise for a failed demo', () => {
  const lines = closingLines({ failures: ['the employer spent XLM'], skipped: ['x'] })
  expect(lines).toEqual(['NOT AS PROMISED: the employer spent XLM', 'SKIPPED: x'])
})
