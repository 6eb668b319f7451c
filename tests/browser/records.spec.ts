import { expect } from '@playwright/test'
import { test } from './fixtures.ts'
import { DESKTOP, findFaults, PHONE, visit } from './operator.ts'
import type { SeededProgram } from './seeded.ts'

let program: SeededProgram
let addresses: SeededProgram['addresses']
test.beforeAll(({ seeded }) => {
  program = seeded
  addresses = seeded.addresses
})

test('seeds open, accepted and expired invites', async ({ page }) => {
  await visit(page, program, '/contractors')
  for (const words of [/Open until \d+ \w{3}$/, /^Accepted$/, /^Expired$/]) {
    await expect(page.getByRole('cell', { name: words }).first()).toBeVisible()
  }
})

test('links a transaction to its transfer only if it has one', async ({ page }) => {
  await visit(page, program, `/ledger/${'0'.repeat(64)}`)
  await expect(page.getByRole('main').getByRole('link', { name: 'Transfers' })).toHaveAttribute('href', '/transfers')
  await page.setViewportSize(PHONE)
  const hash = page.locator('.hash[data-whole] code')
  expect(await hash.evaluate((code) => code.scrollWidth - code.clientWidth)).toBeLessThanOrEqual(0)
  expect(await hash.evaluate((code) => code.clientWidth)).toBeGreaterThan(100)
  await page.setViewportSize(DESKTOP)
  await page.goto(`${program.base}/transfers?view=failed`)
  await page.locator('tbody a[href^="/transfers/"]').filter({ visible: true }).first().click()
  await page.getByRole('main').locator('a[href^="/ledger/"]').first().click()
  await page.getByRole('link', { name: 'Its transfer' }).click()
  await expect(page.getByRole('heading', { level: 1, name: /^Transfer / })).toBeVisible()
})

test('keeps the frame on the page of an unknown record', async ({ page }) => {
  for (const path of [`/batches/${crypto.randomUUID()}`, '/ledger/none']) {
    const response = page.waitForResponse(`${program.base}${path}`)
    await visit(page, program, path)
    expect((await response).status()).toBe(404)
    await expect(page.getByRole('heading', { level: 1 })).toHaveText('There is nothing here')
    await expect(page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Batches' })).toBeVisible()
    expect(await findFaults(page, DESKTOP, PHONE)).toEqual([])
  }
})

test('keeps the frame of an unknown record without JavaScript', async ({ page, browser }) => {
  await visit(page, program)
  const context = await browser.newContext({ javaScriptEnabled: false })
  await context.addCookies(await page.context().cookies())
  const plain = await context.newPage()
  for (const path of [`/batches/${crypto.randomUUID()}`, '/transfers/none', '/ledger/none', '/docs/none']) {
    expect((await plain.goto(`${program.base}${path}`))?.status(), path).toBe(404)
    await expect(plain.getByRole('heading', { level: 1 })).toHaveText('There is nothing here')
    await expect(plain.getByRole('navigation')).toBeVisible()
  }
  await context.close()
})

test('shows the current page, the current tab and the connection with forced colours', async ({ page }) => {
  await page.emulateMedia({ forcedColors: 'active' })
  await visit(page, program, '/batches?status=failed')
  await expect(page.getByText('Live', { exact: true })).toBeVisible()
  const current = page.locator('[aria-current]:not([aria-current=false])')
  await expect(current).toHaveText(['Batches', /^Failed/, 'Newest'])
  for (const one of await current.all()) await expect(one).toHaveCSS('outline-style', 'solid')
  await expect(page.locator('.live-dot')).toHaveCSS('border-top-width', '3px')
})

test('prints a record without controls, and its hashes in full', async ({ page }) => {
  await visit(page, program, addresses[4] ?? '')
  const paper = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor)
  await page.emulateMedia({ media: 'screen', colorScheme: 'light' })
  const light = await paper()
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' })
  expect(await paper()).toBe(light)
  await expect(page.getByRole('heading', { level: 1, name: /^Transfer / })).toBeVisible()
  for (const control of [
    page.getByRole('navigation'),
    page.getByRole('search'),
    page.getByText('Live', { exact: true }),
  ]) {
    await expect(control.filter({ visible: true })).toHaveCount(0)
  }
  const cut = await page
    .locator('.hash code')
    .filter({ visible: true })
    .evaluateAll((all) => all.filter((code) => code.scrollWidth > code.clientWidth).length)
  expect(cut).toBe(0)
})

test('links every contractor to its transfers and relay jobs, even without a payout', async ({ page }) => {
  await visit(page, program, '/contractors?status=inactive')
  await page.locator('tbody').getByRole('link').first().click()
  await expect(page.getByText('Payouts', { exact: true })).toHaveCount(0)
  await page.getByRole('link', { name: 'Relay jobs' }).click()
  await expect(page).toHaveURL(/\/jobs\?contractor=/)
  await expect(page.getByRole('link', { name: /^Remove the filter Contractor/ })).toBeVisible()
})

test('links a payout to its transfer, contractor, batch and organisation, and shows its timeline', async ({ page }) => {
  await visit(page, program, addresses[8] ?? '')
  await expect(page.getByRole('heading', { level: 1, name: 'Payout to Barbara Liskov' })).toBeVisible()
  const timeline = page.getByRole('region', { name: 'Timeline' }).getByRole('listitem')
  await expect(timeline).toContainText([
    /Settled: failed.*transfer:\s*[0-9a-f]{8}/,
    /Sent to the network.*hash:/,
    /Recorded.*inner hash:/,
    /Payout created/,
  ])
  const links = page.getByRole('main').locator('dl').getByRole('link')
  const hrefs = await links.evaluateAll((all) => all.map((one) => one.getAttribute('href') ?? ''))
  for (const [path, title] of [
    ['/transfers/', /^Transfer /],
    ['/contractors/', 'Barbara Liskov'],
    ['/batches/', 'Weekend shift'],
    ['/organisations/', 'Lighthouse Bakery'],
  ] as const) {
    await page.goto(`${program.base}${hrefs.find((href) => href.startsWith(path))}`)
    await expect(page.getByRole('heading', { level: 1, name: title })).toBeVisible()
    await expect(page.getByRole('region', { name: 'Timeline' })).toBeVisible()
  }
})

test('shows the addresses of a record in full on its page', async ({ page }) => {
  for (const path of [addresses[5], addresses.find((address) => /^\/ledger\/.*[1-9a-f]/.test(address))]) {
    await visit(page, program, path)
    const codes = page.getByRole('main').locator('dl .hash code')
    const cut = await codes.evaluateAll((all) => all.map((code) => code.scrollWidth - code.clientWidth))
    expect(cut.length, path).toBeGreaterThan(0)
    expect(Math.max(...cut), path).toBeLessThanOrEqual(0)
  }
})
