import { globSync } from 'node:fs'
import { expect, test } from 'vitest'
import { measureRequest, routeName } from '#lib/http/request-measure.ts'
import { measured } from '#lib/observability/measure.ts'

const nameOf = (path: string, params?: Record<string, unknown>) =>
  routeName(
    new Request(`http://localhost:3000${path}`),
    params === undefined ? {} : { params: Promise.resolve(params) },
  )

test.each<[path: string, params: Record<string, unknown> | undefined, name: string]>([
  ['/api/health', {}, '/health'],
  ['/api/health?account=GABC', undefined, '/health'],
  ['/api/batches/1', { id: '1' }, '/batches/{id}'],
  ['/api/batches/status/status', { id: 'status' }, '/batches/{id}/status'],
  ['/api/batches/batches', { id: 'batches' }, '/batches/{id}'],
  ['/api/%68ealth', {}, '/health'],
  ['/api/contractors/contractors', { id: 'contractors' }, '/contractors/{id}'],
  ['/api/contractors/a%20b%2Fc/invite', { id: 'a b/c' }, '/contractors/{id}/invite'],
  ['/api/invites/s3cr3t/accept', { token: 's3cr3t' }, '/invites/{token}/accept'],
  ['/api/nope/at/all', { path: ['nope', 'at', 'all'] }, 'none'],
  ['/api', {}, 'none'],
  ['/api/contractors/%zz', { id: 'other' }, 'none'],
  ['/api/contractors/%zz', {}, 'none'],
])('%s', async (path, params, name) => {
  expect(await nameOf(path, params)).toBe(name)
})

const ROUTES = globSync('app/api/**/route.ts')
  .map((file) => file.replace(/^app\/api|\/route\.ts$/g, ''))
  .filter((route) => !route.includes('...'))

test('every route is named by its own name, whatever its parameter is', async () => {
  expect(ROUTES.length).toBeGreaterThan(20)
  for (const route of ROUTES) {
    const [, parameter] = /\[(\w+)\]/.exec(route) ?? []
    const words = route.split('/').filter((word) => word !== '' && !word.startsWith('['))
    const values = parameter === undefined ? [''] : ['6f2b', 'a b', ...words]
    for (const value of values) {
      const path = route.replace(/\[\w+\]/, encodeURIComponent(value))
      const params = parameter === undefined ? {} : { [parameter]: value }
      expect(await nameOf(`/api${path}`, params), path).toBe(route.replaceAll('[', '{').replaceAll(']', '}'))
    }
  }
})

test('what is no part of the interface is not counted', async () => {
  const counted = () => JSON.stringify(measured())
  const measure = (path: string) =>
    measureRequest(new Request(`http://localhost:3000${path}`), {}, { status: 303, seconds: 0.1 })
  const before = counted()
  for (const path of ['/sign-out', '/sign-in/password', '/.well-known/stellar.toml', '/apiary']) await measure(path)
  expect(counted()).toBe(before)
  await measure('/api/health')
  expect(counted()).not.toBe(before)
})
