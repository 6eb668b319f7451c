import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { OPERATIONS } from '#lib/api/operations.ts'
import { isRefusalCode } from '#lib/http/refusal.ts'

const page = readFileSync('docs/api.md', 'utf8')

test('every call of the journeys is an operation', () => {
  const calls = [...page.matchAll(/`(GET|POST|PATCH|DELETE) (\/[^\s`?]*)/g)].map(
    ([, method, path]) => `${method} ${path}`,
  )
  const known = OPERATIONS.map(({ method, path }) => `${method} ${path}`)
  expect(calls.length).toBeGreaterThan(15)
  expect(calls.filter((call) => !known.includes(call))).toEqual([])
})

test('every code that the page names is one of the list', () => {
  const [, table = ''] = page.split('what to do when it does not answer 200')
  const codes = [...(table.split('## States')[0]?.matchAll(/(?:500|or) `([a-z-]+)`/g) ?? [])].map(
    ([, code = '']) => code,
  )
  expect(codes.length).toBeGreaterThan(6)
  expect(codes.filter((code) => !isRefusalCode(code))).toEqual([])
})

test('its examples are JSON', () => {
  for (const [, example = ''] of page.matchAll(/```json\n\s*(.*?)\n\s*```/gs))
    expect(() => JSON.parse(example)).not.toThrow()
})
