import { expect } from '@playwright/test'
import { test } from './fixtures.ts'
import { DESKTOP, findBarriers, findFaults, overflowOf, PAGES, PHONE } from './operator.ts'
import type { SeededProgram } from './seeded.ts'
import { openAll } from './seeded.ts'

let program: SeededProgram
let addresses: SeededProgram['addresses']
test.beforeAll(({ seeded }) => {
  program = seeded
  addresses = seeded.addresses
})

test('covers every operator page', () => {
  const pathOf = (address: string) => new URL(address, program.base).pathname
  expect(addresses.map(pathOf)).toEqual(expect.arrayContaining(PAGES.map(([address]) => pathOf(address))))
})

/** One page of each kind. */
const KINDS = [/^\/overview$/, /^\/batches\//, /^\/transfers\//, /^\/transfers\?view=failed/, /^\/search\?q=grace/]

test('is accessible and unclipped with everything open on a phone', async ({ page }) => {
  await page.setViewportSize(PHONE)
  const some = KINDS.flatMap((kind) => addresses.find((address) => kind.test(address)) ?? [])
  expect(some).toHaveLength(KINDS.length)
  for (const address of some) {
    await openAll(page, program, address)
    expect(await findBarriers(page), address).toEqual([])
    expect(await overflowOf(page), address).toBeLessThanOrEqual(0)
  }
})

test('is accessible and unclipped with everything open on a desktop', { tag: '@long' }, async ({ page }) => {
  await page.setViewportSize(DESKTOP)
  for (const address of addresses) {
    await openAll(page, program, address)
    expect(await findFaults(page, DESKTOP), address).toEqual([])
  }
})
