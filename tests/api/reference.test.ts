import { expect, test } from 'vitest'
import { curlCommand, requestPath } from '#lib/api/reference/curl.ts'
import { reference } from '#lib/api/reference/reference.ts'

const find = (id: string) =>
  reference()
    .flatMap(({ operations }) => operations)
    .find((one) => one.id === id)

test('derives fields, nested ones too, from the schemas of an operation', () => {
  const { body, response, role, token } = find('importContractors') ?? {}
  expect([token, role]).toEqual(['session', 'employer'])
  const names = body?.fields.map(({ name }) => name)
  expect(names).toEqual(['rows', 'rows[].name', 'rows[].email', 'rows[].address', 'rows[].amount', 'rows[].externalId'])
  expect(body?.fields[1]).toMatchObject({ type: 'string', isRequired: true })
  expect(response?.fields.map(({ name }) => name)).toContain('imported[].rate.amount')
})

test('shows the values of an enumeration, and the limits of a number', () => {
  const query = find('listContractors')?.query ?? []
  expect(query.find(({ name }) => name === 'status')?.type).toContain('"ready"')
  expect(query.find(({ name }) => name === 'limit')).toMatchObject({ isRequired: false, example: '100' })
  expect(query.find(({ name }) => name === 'limit')?.description).toContain('1 to 500')
})

test('has the header of operations that take an Idempotency-Key', () => {
  expect(find('createBatch')).toMatchObject({ headers: [{ name: 'Idempotency-Key', isRequired: false }] })
  expect(find('createBatch')?.response?.headers.join()).toContain('Idempotency-Replayed')
  expect(find('lockBatch')).toMatchObject({ headers: [] })
})

test('names every operation once', () => {
  const ids = reference().flatMap(({ operations }) => operations.map(({ id }) => id))
  expect(new Set(ids).size).toBe(ids.length)
})

test('quotes a command for the shell', () => {
  const request = { method: 'POST', url: 'http://h/api/x', token: 't', body: `{"a":"it's"}` }
  expect(curlCommand(request)).toBe(
    [
      `curl -X POST 'http://h/api/x'`,
      `-H 'Authorization: Bearer t'`,
      `-H 'Content-Type: application/json'`,
      `-d '{"a":"it'\\''s"}'`,
    ].join(' \\\n  '),
  )
  const headers = { 'Idempotency-Key': 'k', Empty: '' }
  expect(curlCommand({ method: 'POST', url: 'http://h', token: '', headers, body: undefined })).toBe(
    `curl -X POST 'http://h' \\\n  -H 'Idempotency-Key: k'`,
  )
  expect(curlCommand({ method: 'GET', url: 'http://h', token: '', body: undefined })).toBe(`curl 'http://h'`)
})

test('fills a path and leaves out empty parameters of the query', () => {
  expect(requestPath('/batches/{id}/run', { id: 'a/b' }, { limit: '', q: 'x y' })).toBe('/batches/a%2Fb/run?q=x+y')
  expect(requestPath('/health', {}, {})).toBe('/health')
})
