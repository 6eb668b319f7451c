import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { resource } from '#lib/http/resource.ts'
import { measured } from '#lib/observability/measure.ts'
import { captureLog } from '../support/console.ts'

beforeEach(() => void captureLog())
afterEach(() => vi.restoreAllMocks())

const ask = (path: string, options: { route?: string }) =>
  resource({ GET: async () => ({}) }, options).GET(new Request(`http://localhost:3000${path}`), {})
const counted = () => JSON.stringify(measured())

test('a request is counted under its route, whatever its parameters are', async () => {
  await ask('/api/invites/s3cr3t/accept', { route: '/invites/{token}/accept' })
  expect(counted()).toContain('/invites/{token}/accept')
  expect(counted()).not.toContain('s3cr3t')
})

test('what is no part of the interface is not counted', async () => {
  const before = counted()
  await ask('/sign-out', {})
  expect(counted()).toBe(before)
})
