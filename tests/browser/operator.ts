import AxeBuilder from '@axe-core/playwright'
import { type Cookie, expect, type Locator, type Page } from '@playwright/test'
import { PASSWORD, type RunningProgram } from './running-program.ts'

/** The operator pages that need no records. */
export const PAGES = [
  ['/overview', 'Overview'],
  ['/batches', 'Batches'],
  ['/transfers', 'Transfers'],
  ['/transfers?view=refused', 'Transfers'],
  ['/contractors', 'Contractors'],
  ['/organisations', 'Organisations'],
  ['/jobs', 'Jobs'],
  ['/audit', 'Audit log'],
  ['/search', 'Search'],
] as const

export const DESKTOP = { width: 1440, height: 900 }
export const PHONE = { width: 390, height: 844 }
export const NARROWEST = { width: 360, height: 740 }

/** The narrowest and the widest screen; with `@long`, the breakpoints of the lists and common widths between them. */
export const WIDTHS = [
  { tag: [], widths: [360, 1440] },
  { tag: '@long', widths: [390, 640, 768, 1024, 1280] },
]

export async function signIn(page: Page, base: string, password = PASSWORD): Promise<void> {
  if (!page.url().includes('/sign-in')) await page.goto(`${base}/sign-in`)
  await page.getByLabel('Your name').fill('Ada Operator')
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

/** Opens a page and waits until React handles its buttons: earlier clicks have no effect. */
export async function openInteractive(page: Page, address: string): Promise<void> {
  await page.goto(address)
  await page.waitForFunction(() => {
    const button = document.querySelector('main button')
    return button !== null && Object.keys(button).some((key) => key.startsWith('__reactProps'))
  })
}

/** Signs in and waits for the dashboard. */
export async function enter(page: Page, base: string): Promise<void> {
  await signIn(page, base)
  await expect(page.getByRole('heading', { level: 1, name: 'Overview' })).toBeVisible()
}

/** The cookies of a signed-in operator, by service. */
const signedIn = new WeakMap<RunningProgram, Cookie[]>()

/** Opens a page as a signed-in operator. Signs in once per service, because checking the password is slow. */
export async function visit(page: Page, program: RunningProgram, path = '/overview'): Promise<void> {
  const cookies = signedIn.get(program)
  if (cookies) await page.context().addCookies(cookies)
  else {
    await enter(page, program.base)
    signedIn.set(program, await page.context().cookies())
  }
  await page.goto(`${program.base}${path}`)
}

/**
 * Clicks every closed `details` of `place` and expects that a mouse would reach each. It does so in one step: a mouse click
 * on each would take minutes.
 */
export async function expandAll(place: Locator): Promise<void> {
  const closed = place.locator('details:not([open]) > summary').filter({ visible: true })
  // Some are inside others.
  while ((await closed.count()) > 0) {
    const covered = await closed.evaluateAll((all) =>
      all.flatMap((one) => {
        one.scrollIntoView({ block: 'center', behavior: 'instant' })
        const { x, y, width, height } = one.getBoundingClientRect()
        const isReached = one.contains(document.elementFromPoint(x + width / 2, y + height / 2))
        ;(one as HTMLElement).click()
        return isReached ? [] : [one.textContent]
      }),
    )
    expect(covered).toEqual([])
  }
}

const ALL_RULES = { rules: { 'target-size': { enabled: true } } }
// The rule for level AAA is off by default, but selecting a tag would enable it.
const COLOUR_RULES = { runOnly: ['cat.color'], rules: { 'color-contrast-enhanced': { enabled: false } } }

/** The axe violations of the open page, of any severity. Waits for colour transitions to finish. */
export async function findBarriers(
  page: Page,
  rules: Parameters<AxeBuilder['options']>[0] = ALL_RULES,
): Promise<string[]> {
  // After a navigation, Next sets the title slightly later than the URL.
  await expect(page).toHaveTitle(/./)
  const isInjected = await page.evaluate(async () => {
    await Promise.allSettled(
      document
        .getAnimations()
        .filter((animation) => animation instanceof CSSTransition)
        .map(({ finished }) => finished),
    )
    return 'axe' in window
  })
  // Skips frames, which no page has, and passing elements: both would take most of the time.
  const { violations } = await new AxeBuilder({ page, ...(isInjected && { axeSource: ';' }) })
    .setLegacyMode()
    .options({ resultTypes: ['violations'], ...rules })
    .analyze()
  return violations.map(({ id, impact, nodes }) => `${impact} ${id}: ${nodes.map(({ target }) => target).join(' ')}`)
}

/**
 * The accessibility violations and clipped content of the open page, light and dark, for each size. The dark scheme
 * changes only colours (app/globals.css), so the rules that depend on nothing else run in light only.
 */
export async function findFaults(page: Page, ...sizes: (typeof DESKTOP)[]): Promise<string[]> {
  const faults: string[] = []
  for (const size of sizes) {
    await page.setViewportSize(size)
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      // A page that changes its colours by script must receive the event before the next frame.
      await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)))
      const barriers = await findBarriers(page, colorScheme === 'light' ? ALL_RULES : COLOUR_RULES)
      const overflow = await overflowOf(page)
      if (overflow > 0) barriers.push(`${overflow} pixels are cut off`)
      faults.push(...barriers.map((fault) => `${colorScheme}, ${size.width} pixels: ${fault}`))
    }
  }
  return faults
}

/** By how many pixels the page is wider than the window. */
export function overflowOf(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)
}

/** The hidden pixels of the page, or of its list, which clips overflowing content. */
export async function hiddenOf(page: Page): Promise<number> {
  const list = await page
    .getByRole('table')
    .evaluate(({ parentElement: box, scrollWidth }) => scrollWidth - (box?.clientWidth ?? 0))
  return Math.max(list, await overflowOf(page))
}
