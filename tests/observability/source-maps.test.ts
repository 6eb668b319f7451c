import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { describeFailure } from '#lib/observability/log.ts'
import { mapStack } from '#lib/observability/source-maps.ts'

let directory: string
let chunks: string
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'payroll-maps-'))
  chunks = join(directory, '.next/server/chunks')
  mkdirSync(join(chunks, '(operator)'), { recursive: true })
  // The first column of the chunk is that of the source's third line.
  const map = { version: 3, sources: ['../../../lib/relay/pay.ts'], names: [], mappings: 'AAEA' }
  writeFileSync(join(chunks, '[root]_1.js.map'), JSON.stringify(map))
  const sectioned = { ...map, sources: ['turbopack:///[project]/app/%28operator%29/page.tsx'] }
  const sections = [{ offset: { line: 0, column: 0 }, map: sectioned }]
  writeFileSync(join(chunks, '(operator)/page.js.map'), JSON.stringify({ version: 3, sections }))
})
afterAll(() => rmSync(directory, { recursive: true }))

function failAt(place: string): string {
  return describeFailure(Object.assign(new Error('broken'), { stack: `Error: broken\n    at pay (${place})` }))
}

test.each([
  ['[root]_1.js:1:1', 'lib/relay/pay.ts:3:1'],
  ['(operator)/page.js:1:1', 'app/(operator)/page.tsx:3:1'],
])('names the source of %s', (chunk, source) => {
  expect(failAt(join(chunks, chunk))).toBe(`Error: broken\n    at pay (${source})`)
  expect(failAt(`file://${join(chunks, chunk)}`)).toBe(`Error: broken\n    at pay (${source})`)
})

test('keeps a place without a map', () => {
  for (const place of [join(chunks, 'other.js:1:1'), '/project/lib/relay/pay.ts:3:1', 'node:internal/x:1:1']) {
    expect(failAt(place)).toBe(`Error: broken\n    at pay (${place})`)
  }
})

test('leaves the message as it is, however long and like a place it is', () => {
  const place = join(chunks, '[root]_1.js:1:1')
  for (const message of [place, '/'.repeat(100_000), '/.next/server/'.repeat(10_000)]) {
    const stack = `Error: ${message}\n    at pay (${place})`
    const mapped = mapStack(stack)
    expect(mapped).toBe(`Error: ${message}\n    at pay (lib/relay/pay.ts:3:1)`)
  }
})
