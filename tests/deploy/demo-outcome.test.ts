import { expect, test } from 'vitest'
import { closingLines } from '#lib/cli/demo/payroll.ts'

test('a complete demo promises everything', () => {
  expect(closingLines({ failures: [], skipped: [] })).toEqual([expect.stringMatching(/^All as promised/)])
})

test('a demo that skipped a part names it, and does not promise everything', () => {
  const lines = closingLines({ failures: [], skipped: ['the batch of the relay (batch execution is off)'] })
  expect(lines[0]).toBe('SKIPPED: the batch of the relay (batch execution is off)')
  expect(lines.join()).not.toMatch(/all as promised/i)
})

test('a failed demo promises nothing', () => {
  const lines = closingLines({ failures: ['the employer spent XLM'], skipped: ['x'] })
  expect(lines).toEqual(['NOT AS PROMISED: the employer spent XLM', 'SKIPPED: x'])
})
