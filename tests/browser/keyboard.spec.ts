import { expect, type Page } from '@playwright/test'
import { test } from './fixtures.ts'
import { DESKTOP, PHONE } from './operator.ts'
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

for (const size of [DESKTOP, PHONE]) {
  test(`reaches everything by Tab with everything open, ${size.width} pixels`, { tag: '@long' }, async ({ page }) => {
    await page.setViewportSize(size)
    for (const address of addresses) {
      await openAll(page, program, address)
      const { targets, ...missed } = await walkByTab(page)
      expect(targets, address).toBeGreaterThan(5)
      expect(missed, address).toEqual({ unreached: [], unmarked: [] })
    }
  })
}
