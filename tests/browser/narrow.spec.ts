import { expect } from '@playwright/test'
import { test } from './fixtures.ts'
import { findFaults, NARROWEST } from './operator.ts'
import type { SeededProgram } from './seeded.ts'
import { openAll } from './seeded.ts'

let program: SeededProgram
let addresses: SeededProgram['addresses']
test.beforeAll(({ seeded }) => {
  program = seeded
  addresses = seeded.addresses
})

test('is accessible and unclipped with everything open on a narrow phone', { tag: '@long' }, async ({ page }) => {
  await page.setViewportSize(NARROWEST)
  for (const address of addresses) {
    await openAll(page, program, address)
    expect(await findFaults(page, NARROWEST), address).toEqual([])
  }
})
