import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { describe, expect, test } from 'vitest'
import { Operation } from '#app/docs/operation.tsx'
import { curlText } from '#app/docs/request-text.ts'
import { OPERATIONS } from '#lib/api/operations.ts'
import { fieldsOf } from '#lib/openapi/fields.ts'
import { readReference } from '#lib/openapi/reference.ts'

const BASE_URL = 'http://localhost:3000/api'
const reference = readReference(BASE_URL)
const operations = reference.groups.flatMap((group) => group.operations)
const named = (id: string) => {
  const found = operations.find((operation) => operation.id === id)
  if (!found) throw new Error(`no operation ${id}`)
  return found
}
/** The same text as in a page, without its tags. */
const textOf = (html: string) =>
  html
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll('&quot;', '"')
    .replaceAll('&#x27;', "'")
    .replaceAll('&gt;', '>')
    .replaceAll('&lt;', '<')
    .replaceAll('&amp;', '&')
    .replaceAll(/\s+/g, ' ')

test('every operation is in one group, and no group is empty', () => {
  expect(operations.map(({ id }) => id).sort()).toEqual(OPERATIONS.map(({ id }) => id).sort())
  expect(reference.groups.filter((group) => group.operations.length === 0)).toEqual([])
  const anchors = [...reference.groups.map(({ anchor }) => anchor), ...operations.map(({ id }) => id)]
  expect(new Set(anchors).size).toBe(anchors.length)
})

test('fields of objects and lists stand under the name of what they are in', () => {
  const names = (id: string) => named(id).body?.fields.map(({ name, type, isRequired }) => [name, type, isRequired])
  expect(names('createContractor')).toEqual([
    ['name', 'string', true],
    ['email', 'string', false],
    ['address', 'string', false],
    ['rate', 'object', false],
    ['rate.amount', 'string', true],
    ['rate.currency', 'USDC', true],
  ])
  expect(names('instructBatch')).toEqual([
    ['instructions', 'list of object', true],
    ['instructions[].contractorId', 'string', true],
    ['instructions[].encryptedAmount', 'string', false],
  ])
  expect(named('sponsorTransfer').body?.fields.find(({ name }) => name === 'payoutId')?.isExtension).toBe(true)
})

test('limits are told with the field, references are followed', () => {
  const schema = {
    required: ['page'],
    properties: {
      page: { type: 'integer', minimum: 1, maximum: 5, description: 'which' },
      name: { type: ['string', 'null'], minLength: 1, maxLength: 9 },
      rows: { type: 'array', items: { $ref: '#/components/schemas/Row' } },
      end: { anyOf: [{ type: 'string' }, { type: 'null' }] },
    },
  }
  const row = { type: 'object', properties: { status: { enum: ['a', 'b'] } } }
  expect(fieldsOf(schema, { Row: row }).map(({ name, type, note }) => [name, type, note])).toEqual([
    ['page', 'integer', 'which; 1 to 5'],
    ['name', 'string or null', '1 to 9 characters'],
    ['rows', 'list of Row', ''],
    ['rows[].status', 'a | b', ''],
    ['end', 'string or null', ''],
  ])
})

describe.each(operations.map((operation) => [operation.id, operation] as const))('%s', (_, operation) => {
  test('its request is one that a shell understands', async () => {
    const script = `curl() { printf '%s\\0' "$@"; }\n${curlText(operation, BASE_URL)}`
    const tokens = { SESSION: 'a b', METRICS_TOKEN: 'a b', CRON_SECRET: 'a b' }
    const { stdout } = await promisify(execFile)('/bin/sh', ['-c', script], { env: { NODE_ENV: 'test', ...tokens } })
    const given = stdout.split('\0').slice(0, -1)
    const following = (flag: string) => given.flatMap((text, index) => (given[index - 1] === flag ? text : []))
    const url = new URL(given.find((text) => text.startsWith(BASE_URL)) ?? '')
    expect(url.pathname.split('/').length).toBe(`/api${operation.path}`.split('/').length)
    expect(url.href).not.toMatch(/[{}]|%7B/)
    expect(following('-X')).toEqual(operation.method === 'GET' ? [] : [operation.method])
    expect(following('-H').filter((header) => header === 'Authorization: Bearer a b')).toHaveLength(
      operation.token ? 1 : 0,
    )
    expect(following('-d').map((body) => JSON.parse(body))).toEqual(operation.body ? [operation.body.example] : [])
  })

  test('its part of the page has its fields, answers and messages', () => {
    const html = renderToStaticMarkup(createElement(Operation, { operation, baseUrl: BASE_URL }))
    expect(html).toContain(`id="${operation.id}"`)
    const text = textOf(html)
    for (const { name } of [...operation.parameters, ...(operation.body?.fields ?? [])]) expect(text).toContain(name)
    for (const { status, messages } of operation.answers) {
      expect(text).toContain(String(status))
      for (const message of messages) expect(text).toContain(message.replaceAll(/\s+/g, ' '))
    }
    expect(text.includes('Extension: not in the specification')).toBe(operation.isExtension)
  })
})
