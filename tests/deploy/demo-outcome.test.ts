import { expect, test } from 'vitest'
import { closingLines } from '#lib/cli/demo/outcome.ts'

test('a demonstration that showed everything says so', () => {
  expect(closingLines({ failures: [], skipped: [] })).toEqual([expect.stringMatching(/^All as promised/)])
})

test('one that skipped a part names the part, and never says that all is as promised', () => {
  const lines = closingLines({ failures: [], skipped: ['the batch of the relay (batch execution is off)'] })
  expect(lines[0]).toBe('SKIPPED: the batch of the relay (batch execution is off)')
  expect(lines.join()).not.toMatch(/all as promised/i)
})

test('one that failed promises nothing', () => {
  const lines = closingLines({ failures: ['the employer spent XLM'], skipped: ['x'] })
  expect(lines).toEqual(['NOT AS PROMISED: the employer spent XLM', 'SKIPPED: x'])
})
