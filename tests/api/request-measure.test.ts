import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { resource } from '#lib/api/resource.ts'
import { metrics } from '#lib/observability/metrics.ts'
import { captureLog } from '../support/console.ts'

beforeEach(() => void captureLog())
afterEach(() => vi.restoreAllMocks())

const ask = (path: string, options: { route?: string }) =>
  resource({ GET: async () => ({}) }, options).GET(new Request(`http://localhost:3000${path}`), {})
const counted = () => metrics().registry.getSingleMetricAsString('payroll_http_requests_total')

test('counts a request under its route, without parameters', async () => {
  await ask('/api/invites/s3cr3t/accept', { route: '/invites/{token}/accept' })
  expect(await counted()).toContain('/invites/{token}/accept')
  expect(await counted()).not.toContain('s3cr3t')
})

test('does not count a request outside the API', async () => {
  const before = await counted()
  await ask('/sign-out', {})
  expect(await counted()).toBe(before)
})
