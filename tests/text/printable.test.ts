import { afterEach, expect, test, vi } from 'vitest'
import { print, printMessage } from '#lib/cli/process/output.ts'
import { parseBundles } from '#lib/disclosure/bundle.ts'
import { formatReport } from '#lib/disclosure/report-format.ts'
import { parseRequest } from '#lib/disclosure/request.ts'
import { onOneLine } from '#lib/text/printable.ts'

/** Clears the screen, moves up, colours, rings, returns to the start of the line, reverses; as one C1 character: CSI. */
const HOSTILE = '\u001b[2J\u001b[1A\u001b[31m\u0007\rpaid\u202e\u2066\u009b31m\u007f\b'
const CONTROL = /[\p{Cc}\u202a-\u202e\u2066-\u2069]/u

afterEach(() => vi.restoreAllMocks())

test.each([
  ['log', print],
  ['error', printMessage],
] as const)('a command prints control characters escaped: console.%s', (method, output) => {
  const written = vi.spyOn(console, method).mockImplementation(() => undefined)
  output(`a\tb\r\n${HOSTILE}\nÅsa, 李, שלום`)
  output(new Error(HOSTILE))
  output({ name: HOSTILE })
  const [text, ...values] = written.mock.calls.map(([value]) => String(value))
  const [first, second = '', third] = text?.split('\n') ?? []
  expect(first).toBe('a\tb\r')
  expect(second).toMatch(/^\\u001b\[2J\\u001b\[1A\\u001b\[31m\\u0007\\u000dpaid\\u202e/)
  expect(second).not.toMatch(CONTROL)
  expect(third).toBe('Åsa, 李, שלום')
  for (const value of values) expect(value.replaceAll('\n', '')).not.toMatch(CONTROL)
})

test('JSON remains JSON', () => {
  const written = vi.spyOn(console, 'log').mockImplementation(() => undefined)
  print(JSON.stringify({ name: HOSTILE }))
  const [[text] = []] = written.mock.calls
  expect(text).not.toMatch(CONTROL)
  expect(JSON.parse(String(text))).toEqual({ name: HOSTILE })
})

test('a cell of a table stays in its row, and an escaped one keeps the columns aligned', () => {
  const columns = ['name', 'amount'].map((name) => ({ name, title: name }))
  const row = (...cells: string[]) => ({ date: '2026-01-01', cells })
  const rows = [row('Ada\n2026-01-02  Eve', '1.0000000'), row(HOSTILE, '2.0000000')]
  const lines = formatReport({ title: 'T', about: [['Account', 'G\n']], columns, rows, notes: [] }, 'table').split('\n')
  expect(lines).toHaveLength(6)
  for (const line of lines) expect(line).not.toMatch(CONTROL)
  expect(lines[4]).toContain('Ada\\u000a2026-01-02  Eve')
  expect(lines[4]?.indexOf('1.0000000')).toBe(lines[5]?.indexOf('2.0000000'))
})

test.each([
  ['a request', parseRequest],
  ['a bundle', parseBundles],
] as const)('the reason why %s is malformed is one line of text', (_, parse) => {
  const text = JSON.stringify({ [`${HOSTILE}\n`]: 1 })
  const fault = (() => {
    try {
      return parse(text)
    } catch (error) {
      return error
    }
  })()
  expect(fault).toBeInstanceOf(Error)
  expect((fault as Error).message).not.toMatch(CONTROL)
})

test('a line has no line ends and no tabs', () => {
  expect(onOneLine('a\r\nb\tc\u2028')).toBe('a\\u000d\\u000ab\\u0009c\\u2028')
})
