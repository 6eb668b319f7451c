import AxeBuilder from '@axe-core/playwright'
import { expect, type Page } from '@playwright/test'
import { PASSWORD } from './running-program.ts'

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

/** Gives the password, as a person does. */
export async function signIn(page: Page, base: string, password = PASSWORD): Promise<void> {
  if (!page.url().includes('/sign-in')) await page.goto(`${base}/sign-in`)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

/** Signs in and waits for the dashboard. */
export async function enter(page: Page, base: string): Promise<void> {
  await signIn(page, base)
  await expect(page.getByRole('heading', { level: 1, name: 'Overview' })).toBeVisible()
}

/** What axe finds wrong with the page that is open, serious or not. A colour on its way to another one is let arrive. */
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
  const { violations } = await new AxeBuilder({ page }).analyze()
  return violations.map(({ id, impact, nodes }) => `${impact} ${id}: ${nodes.map(({ target }) => target).join(' ')}`)
}

/** How many pixels the page is wider than the window. */
export function overflowOf(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)
}
