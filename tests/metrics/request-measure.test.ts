import { expect, test } from 'vitest'
import { routeName } from '#lib/request-measure.ts'

const nameOf = (path: string, params?: Record<string, unknown>) =>
  routeName(
    new Request(`http://localhost:3000${path}`),
    params === undefined ? {} : { params: Promise.resolve(params) },
  )

test.each<[path: string, params: Record<string, unknown> | undefined, name: string]>([
  ['/api/health', {}, '/health'],
  ['/api/health?account=GABC', undefined, '/health'],
  ['/api/batches/1', { id: '1' }, '/batches/{id}'],
  ['/api/batches/status/status', { id: 'status' }, '/batches/status/{id}'],
  ['/api/contractors/contractors', { id: 'contractors' }, '/contractors/{id}'],
  ['/api/contractors/a%20b%2Fc/invite', { id: 'a b/c' }, '/contractors/{id}/invite'],
  ['/api/invites/s3cr3t/accept', { token: 's3cr3t' }, '/invites/{token}/accept'],
  ['/api/nope/at/all', { path: ['nope', 'at', 'all'] }, 'none'],
  ['/api', {}, 'none'],
  ['/api/contractors/%zz', { id: 'other' }, 'none'],
])('%s', async (path, params, name) => {
  expect(await nameOf(path, params)).toBe(name)
})
