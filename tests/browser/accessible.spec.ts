import { expect, type Page } from '@playwright/test'
import { test } from './fixtures.ts'
import { DESKTOP, findBarriers, findFaults, NARROWEST, overflowOf, PAGES, PHONE } from './operator.ts'
import type { SeededProgram } from './seeded.ts'
import { openAll } from './seeded.ts'

let program: SeededProgram
let addresses: SeededProgram['addresses']
test.beforeAll(({ seeded }) => {
  program = seeded
  addresses = seeded.addresses
})

/** Tabs through the page; resolves to the elements it does not reach, and those without a focus outline. */
async function walkByTab(page: Page): Promise<{ targets: number; unreached: string[]; unmarked: string[] }> {
  const targets = await page.evaluate(() => {
    const all = [...document.querySelectorAll<HTMLElement>('a[href], button, input, select, textarea, summary')].filter(
      // A chart's bars are for pointers only: its table has the same links.
      (one) =>
        one.checkVisibility() && one.getAttribute('type') !== 'hidden' && one.closest('[aria-hidden="true"]') === null,
    )
    const nameOf = (one: HTMLElement) => `${one.tagName} ${one.getAttribute('aria-label') ?? one.textContent}`
    const reached = new Set<HTMLElement>()
    const unmarked = new Set<string>()
    document.addEventListener('focusin', ({ target }) => {
      const one = target as HTMLElement
      reached.add(one)
      const { outlineStyle, outlineWidth } = getComputedStyle(one)
      if (outlineStyle === 'none' || Number.parseFloat(outlineWidth) < 1) unmarked.add(nameOf(one))
    })
    Reflect.set(window, 'tellWalk', () => ({
      targets: all.length,
      unreached: all.filter((one) => !reached.has(one)).map(nameOf),
      unmarked: [...unmarked],
    }))
    ;(document.activeElement as HTMLElement | null)?.blur()
    return all.length
  })
  const report = () =>
    page.evaluate(() => (Reflect.get(window, 'tellWalk') as () => never)()) as ReturnType<typeof walkByTab>
  for (let pressed = 0; pressed < targets; pressed += 1) await page.keyboard.press('Tab')
  // A date field takes several presses, so there are more presses than targets.
  let walk = await report()
  for (let more = 0; more < 40 && walk.unreached.length > 0; more += 1) {
    await page.keyboard.press('Tab')
    walk = await report()
  }
  return walk
}

test('covers every operator page', () => {
  const pathOf = (address: string) => new URL(address, program.base).pathname
  expect(addresses.map(pathOf)).toEqual(expect.arrayContaining(PAGES.map(([address]) => pathOf(address))))
})

/** One page of each kind. */
const KINDS = [/^.overview$/, /^.batches.[^?]/, /^.transfers.[^?]/, /^.transfers.view=failed/, /^.search.q=grace/]

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

for (const [size, walked] of [
  [DESKTOP, DESKTOP],
  [NARROWEST, PHONE],
] as const) {
  const name = `is accessible, unclipped and reachable by Tab with everything open, ${size.width} pixels`
  test(name, { tag: '@long' }, async ({ page }) => {
    for (const address of addresses) {
      await page.setViewportSize(size)
      await openAll(page, program, address)
      expect(await findFaults(page, size), address).toEqual([])
      await page.setViewportSize(walked)
      const { targets, ...missed } = await walkByTab(page)
      expect(targets, address).toBeGreaterThan(5)
      expect(missed, address).toEqual({ unreached: [], unmarked: [] })
    }
  })
}
