import { afterEach, expect, test, vi } from 'vitest'
import { captureConsole, log, logReadably } from '#lib/observability/log.ts'
import { captureLog } from '../support/console.ts'

let restore: (() => void) | undefined
afterEach(() => {
  restore?.()
  restore = undefined
  vi.restoreAllMocks()
})

function capture(): string[] {
  const lines = captureLog()
  restore = captureConsole()
  return lines
}

test.each([
  ['log', 'info'],
  ['info', 'info'],
  ['debug', 'info'],
  ['warn', 'error'],
  ['error', 'error'],
] as const)('writes what console.%s prints as one JSON object of level %s', (method, level) => {
  const lines = capture()
  console[method]('\u001b[31m⨯\u001b[0m first\nsecond', { nested: { deep: { deeper: 1 } } }, 7)
  expect(lines).toHaveLength(1)
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({
    level,
    event: 'console',
    message: expect.stringMatching(/^⨯ first\nsecond .*7$/s),
  })
})

test('omits the parameters of a failed query', () => {
  const lines = capture()
  const cause = Object.assign(new Error('invalid input syntax: "hunter2"'), { severity: 'ERROR', code: '22P02' })
  const failure = Object.assign(new Error('Failed query: select $1\nparams: hunter2', { cause }), {
    query: 'select $1',
    params: ['hunter2'],
  })
  console.error(' ⨯', failure)
  expect(lines.join()).toContain('Failed query: select $1')
  expect(lines.join()).not.toContain('hunter2')
})

test.each(['A'.repeat(100_000), '\u0001'.repeat(100_000), '€'.repeat(100_000)])('truncates a line to 4 KB', (long) => {
  const lines = capture()
  console.error(long)
  log('error', 'failure', { failure: long, path: long })
  expect(lines).toHaveLength(2)
  for (const line of lines) {
    expect(Buffer.byteLength(line)).toBeLessThanOrEqual(4096)
    expect(JSON.parse(line)).toMatchObject({ level: 'error' })
  }
})

test('writes a process warning as one line', async () => {
  const lines = capture()
  process.emitWarning('first\nsecond', 'TestWarning')
  await new Promise((resolve) => setImmediate(resolve))
  expect(lines).toHaveLength(1)
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ level: 'error', event: 'warning' })
})

test('logs one readable line per entry in development', () => {
  const lines = captureLog()
  restore = logReadably()
  log('info', 'request', { path: '/api/\u001b[31mhealth', status: 200, absent: undefined })
  log('error', 'boot', { failure: 'Error: broken\n    at pay (lib/relay/pay.ts:3:1)' })
  expect(lines).toEqual([
    expect.stringMatching(/^\d\d:\d\d:\d\d request path=\/api\/health status=200$/),
    expect.stringMatching(/^\d\d:\d\d:\d\d ERROR boot failure=Error: broken\n {4}at pay \(lib\/relay\/pay\.ts:3:1\)$/),
  ])
})
