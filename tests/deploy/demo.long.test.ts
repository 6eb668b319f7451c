import { expect, test } from 'vitest'
import { runDemo } from '../support/demo.ts'

test('pays a batch from the delegation of an employer whose process has ended, at no cost to the employer, on a ledger of protocol 30', async () => {
  const { code, lines } = await runDemo({ DEVNET_PROOFS: 'stand-in', DEVNET_CLOSE_MS: '500', DEVNET_PROTOCOL: '30' })
  expect([code, lines.at(-1)]).toEqual([0, expect.stringMatching(/^All as promised/)])
  const start = lines.findIndex((line) => line.startsWith('The employer delegates another batch of five'))
  expect(start).toBeGreaterThan(0)
  const run = lines.slice(start)
  expect(run.filter((line) => line.includes('has signed and started the run'))).toHaveLength(1)
  const payments = run.filter((line) => /^ {2}payment [0-9a-f]{64}$/.test(line))
  expect(new Set(payments).size).toBe(5)
  const closing = run.findIndex((line) => line.includes('100.0000000 test USDC are back'))
  expect(run[closing + 1]).toBe('  with one start, and spent 0.0000000 XLM.')
  expect(lines.filter((line) => /SKIPPED|NOT AS PROMISED/.test(line))).toEqual([])
})
