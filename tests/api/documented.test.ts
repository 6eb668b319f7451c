import { expect, test } from 'vitest'
import { BATCH_EXAMPLE } from '#lib/api/examples.ts'
import { type Exchange, requireDocumented } from '../support/documented.ts'

const JSON_HEADERS = { 'content-type': 'application/json', 'x-request-id': 'a' }
const good: Exchange = {
  method: 'POST',
  path: '/batches/some-id/ready?x=1',
  status: 200,
  headers: new Headers(JSON_HEADERS),
  body: BATCH_EXAMPLE,
}
const refused = (status: number, code: string): Exchange => ({ ...good, status, body: { error: 'why', code } })
const withHeader = (name: string) => new Headers({ ...JSON_HEADERS, [name]: 'x' })

test('names the response and headers of an exchange that the document describes', () => {
  expect(requireDocumented(good)).toEqual(['POST /batches/{id}/ready 200'])
  expect(requireDocumented(refused(409, 'batch-locked'))).toEqual(['POST /batches/{id}/ready 409'])
  const unauthenticated = { ...refused(401, 'session-expired'), headers: withHeader('www-authenticate') }
  const names = ['POST /batches/{id}/ready 401', 'POST /batches/{id}/ready 401 WWW-Authenticate']
  expect(requireDocumented(unauthenticated)).toEqual(names)
})

const { name: _, ...nameless } = BATCH_EXAMPLE
test.each<[what: string, exchange: Exchange, complaint: string]>([
  ['a path', { ...good, path: '/batches/some-id/steady' }, 'no path for /batches/some-id/steady'],
  ['a method', { ...good, method: 'PUT' }, 'no PUT /batches/{id}/ready 200'],
  ['a status', { ...good, status: 201 }, 'no POST /batches/{id}/ready 201'],
  ['a media type', { ...good, headers: new Headers({ ...JSON_HEADERS, 'content-type': 'text/html' }) }, 'is text/html'],
  ['a header', { ...good, headers: withHeader('retry-after') }, 'a Retry-After undocumented'],
  ['an unknown field', { ...good, body: { ...BATCH_EXAMPLE, amount: 5 } }, 'must NOT have additional properties'],
  ['a missing field', { ...good, body: nameless }, "must have required property 'name'"],
  ['a type', { ...good, body: { ...BATCH_EXAMPLE, payoutCount: '1' } }, 'payoutCount must be integer'],
  ['a time', { ...good, body: { ...BATCH_EXAMPLE, createdAt: 'today' } }, 'must match format "date-time"'],
  ['a value', { ...good, body: { ...BATCH_EXAMPLE, status: 'gone' } }, 'must be equal to one of the allowed values'],
  ['a code', refused(409, 'batch-sent'), 'must be equal to one of the allowed values'],
  ['a code of another status', refused(404, 'batch-locked'), 'must be equal to one of the allowed values'],
  ['an error without a code', { ...good, status: 404, body: { error: 'why' } }, "must have required property 'code'"],
  ['a missing header', { ...good, headers: new Headers({ 'content-type': 'application/json' }) }, 'no X-Request-Id'],
])('throws for an exchange that differs from the document in %s', (_, exchange, complaint) => {
  expect(() => requireDocumented(exchange)).toThrow(complaint)
})
