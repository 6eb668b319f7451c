import { readFileSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { OPERATIONS } from '#lib/api/interface.ts'
import { refusalShape } from '#lib/api/presentation.ts'
import { eventShape } from '#lib/events/event.ts'
import { isRefusalCode } from '#lib/refusal/refusal.ts'

const page = readFileSync('docs/api.md', 'utf8')

test('calls only documented operations on the page', () => {
  const calls = [...page.matchAll(/`(GET|POST|PATCH|DELETE) (\/[^\s`?]*)/g)].map(
    ([, method, path]) => `${method} ${path}`,
  )
  const operations = OPERATIONS.map(({ method, path }) => `${method} ${path}`)
  expect(calls.length).toBeGreaterThan(15)
  expect(calls.filter((call) => !operations.includes(call))).toEqual([])
})

test('lists only codes from the table on the page', () => {
  const [, table = ''] = page.split('what to do when it does not return 200')
  const codes = [...(table.split('## States')[0]?.matchAll(/(?:500|or) `([a-z-]+)`/g) ?? [])].map(
    ([, code = '']) => code,
  )
  expect(codes.length).toBeGreaterThan(6)
  expect(codes.filter((code) => !isRefusalCode(code))).toEqual([])
})

/** The bodies of every response, and of a request to a webhook; an unknown route has a separate one. */
const ANSWERS = [
  ...OPERATIONS.flatMap(({ response }) => response?.schema ?? []),
  eventShape,
  refusalShape.strict(),
  z.object({ statusCode: z.literal(404), error: z.literal('Not Found'), message: z.string() }),
]

test('shows only responses that match a schema', () => {
  const examples = [...page.matchAll(/```json\n\s*(.*?)\n\s*```/gs)].map(([, text = '']) => JSON.parse(text) as unknown)
  expect(examples.length).toBeGreaterThan(8)
  // A schema omits unknown fields.
  const isPresent = (example: unknown) =>
    ANSWERS.some((schema) => isDeepStrictEqual(schema.safeParse(example).data, example))
  expect(examples.filter((example) => !isPresent(example))).toEqual([])
})
