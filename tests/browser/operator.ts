import AxeBuilder from '@axe-core/playwright'
import { type Cookie, expect, type Page } from '@playwright/test'
import { PASSWORD, type RunningProgram } from './running-program.ts'

/** Every page of the operator's that needs nothing to be there. */
export const PAGES = [
  ['/overview', 'Overview'],
  ['/batches', 'Batches'],
  ['/transfers', 'Transfers'],
  ['/transfers?view=refused', 'Transfers'],
  ['/contractors', 'Contractors'],
  ['/organisations', 'Organisations'],
  ['/jobs', 'Jobs'],
  ['/audit', 'Audit log'],
] as const

export const DESKTOP = { width: 1440, height: 900 }
export const PHONE = { width: 390, height: 844 }
export const NARROWEST = { width: 360, height: 740 }

/** The widths at which a list takes another form, and those of screens. */
export const WIDTHS = [360, 390, 640, 768, 1024, 1280, 1440]

/** Gives the password, as a person does. */
export async function signIn(page: Page, base: string, password = PASSWORD): Promise<void> {
  if (!page.url().includes('/sign-in')) await page.goto(`${base}/sign-in`)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

/** Opens a page and waits until React handles its buttons: the browser drops a click that comes earlier. */
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

/** The cookies of a person who has signed in, by service. */
const signedIn = new WeakMap<RunningProgram, Cookie[]>()

/** Opens a page as a person who has signed in. The password is given once for each service: to check it takes time. */
export async function visit(page: Page, program: RunningProgram, path = '/overview'): Promise<void> {
  const cookies = signedIn.get(program)
  if (cookies) await page.context().addCookies(cookies)
  else {
    await enter(page, program.base)
    signedIn.set(program, await page.context().cookies())
  }
  await page.goto(`${program.base}${path}`)
}

/** The faults that axe finds on the open page, serious or not. A colour on its way to another one is let arrive. */
export async function findBarriers(page: Page): Promise<string[]> {
  // Next puts the title of the page that a link led to in its place a moment after the address.
  await expect(page).toHaveTitle(/./)
  await page.evaluate(() =>
    Promise.allSettled(
      document
        .getAnimations()
        .filter((animation) => animation instanceof CSSTransition)
        .map(({ finished }) => finished),
    ),
  )
  // No page has frames, and the elements that pass are not asked for: both would take most of the time.
  const { violations } = await new AxeBuilder({ page })
    .setLegacyMode()
    .options({ resultTypes: ['violations'] })
    .analyze()
  return violations.map(({ id, impact, nodes }) => `${impact} ${id}: ${nodes.map(({ target }) => target).join(' ')}`)
}

/** The faults of the open page, on a light and on a dark screen of each size: barriers, and parts that are cut off. */
export async function findFaults(page: Page, ...sizes: (typeof DESKTOP)[]): Promise<string[]> {
  const faults: string[] = []
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    // A page whose script changes its colours is told before the next frame.
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)))
    for (const size of sizes) {
      await page.setViewportSize(size)
      const found = await findBarriers(page)
      const overflow = await overflowOf(page)
      if (overflow > 0) found.push(`${overflow} pixels are cut off`)
      faults.push(...found.map((fault) => `${colorScheme}, ${size.width} pixels: ${fault}`))
    }
  }
  return faults
}

/** How many pixels the page is wider than the window. */
function overflowOf(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)
}

/** How many pixels of the page, or of the list in it, which cuts off what does not fit, are out of sight. */
export async function hiddenOf(page: Page): Promise<number> {
  const list = await page
    .getByRole('table')
    .evaluate(({ parentElement: box, scrollWidth }) => scrollWidth - (box?.clientWidth ?? 0))
  return Math.max(list, await overflowOf(page))
}
