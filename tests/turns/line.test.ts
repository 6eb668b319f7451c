import { setImmediate } from 'node:timers/promises'
import { afterEach, expect, test, vi } from 'vitest'
import { inLine, openLine } from '#lib/turns/line.ts'

afterEach(() => void vi.useRealTimers())

test('runs three pieces of work at once, in their order, even if one fails', async () => {
  const line = openLine({ atOnce: 3 })
  const started: number[] = []
  let running = 0
  let most = 0
  const pieces = Array.from({ length: 40 }, (_, index) =>
    inLine(line, 'one', async () => {
      started.push(index)
      running += 1
      most = Math.max(most, running)
      await setImmediate()
      running -= 1
      if (index % 4 === 0) throw new Error('failed')
    }),
  )
  const settled = await Promise.allSettled(pieces)
  expect(settled.filter(({ status }) => status === 'rejected')).toHaveLength(10)
  expect([most, running]).toEqual([3, 0])
  expect(started).toEqual([...started.keys()])
  expect(line).toEqual(openLine({ atOnce: 3 }))
})

test('takes turns between owners even if one has much work waiting', async () => {
  const line = openLine({ atOnce: 1 })
  const started: string[] = []
  const ask = (owner: string) => inLine(line, owner, async () => void started.push(owner))
  await Promise.all(['greedy', 'greedy', 'greedy', 'greedy', 'modest', 'other'].map(ask))
  expect(started).toEqual(['greedy', 'greedy', 'modest', 'other', 'greedy', 'greedy'])
})

test('limits one owner to its share of the places', async () => {
  const line = openLine({ atOnce: 3, perOwner: 1 })
  const blocker = Promise.withResolvers<void>()
  const started: string[] = []
  const ask = (owner: string) =>
    inLine(line, owner, async () => {
      started.push(owner)
      await blocker.promise
    })
  const all = ['greedy', 'greedy', 'greedy', 'modest'].map(ask)
  await setImmediate()
  expect(started).toEqual(['greedy', 'modest'])
  blocker.resolve()
  await Promise.all(all)
  expect(started).toEqual(['greedy', 'modest', 'greedy', 'greedy'])
})

test('refuses an owner with too much waiting, and no other owner', async () => {
  const line = openLine({ atOnce: 1 })
  const blocker = Promise.withResolvers<void>()
  const all = Array.from({ length: 201 }, () => inLine(line, 'greedy', () => blocker.promise))
  const refusal = { code: 'unavailable', retryAfter: 1 }
  await expect(inLine(line, 'greedy', async () => 'never')).rejects.toMatchObject(refusal)
  const other = inLine(line, 'modest', async () => 'served')
  blocker.resolve()
  expect(await other).toBe('served')
  await Promise.all(all)
})

test('refuses work that has waited for ten seconds, without running it', async () => {
  vi.useFakeTimers()
  const line = openLine({ atOnce: 1 })
  const blocker = Promise.withResolvers<void>()
  const first = inLine(line, 'slow', () => blocker.promise)
  let hasRun = false
  const second = inLine(line, 'patient', async () => {
    hasRun = true
  })
  const refused = expect(second).rejects.toMatchObject({ code: 'unavailable', retryAfter: 1 })
  await vi.advanceTimersByTimeAsync(10_000)
  await refused
  blocker.resolve()
  await first
  expect(hasRun).toBe(false)
  expect(line).toEqual(openLine({ atOnce: 1 }))
})
