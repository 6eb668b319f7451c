import { expect, type Locator, type Page, test } from '@playwright/test'
import { hiddenOf, NARROWEST, PHONE, visit, WIDTHS } from './operator.ts'
import { openPayroll, type Payee, type Payroll } from './payroll.ts'
import { QUICK_LEDGER, type RunningProgram, runProgram } from './running-program.ts'

let program: RunningProgram
let payroll: Payroll
let ada: Payee
let grace: Payee
/** the hash of Ada's transfer */
let hash: string
test.beforeAll(async () => {
  program = await runProgram(QUICK_LEDGER)
  payroll = await openPayroll(program)
  const [first, second] = await payroll.hire('Ada Lovelace', 'Grace Hopper')
  if (!first || !second) throw new Error('no contractor was created')
  ada = first
  grace = second
  await payroll.prepare('November payroll', [ada])
  hash = await payroll.pay(ada)
  await payroll.pay(grace)
  expect(await payroll.overreach(grace)).toBe(422)
})
test.afterAll(() => program.stop())

const rowOf = (page: Page, text: string): Locator => page.getByRole('row').filter({ hasText: text })
const seen = (place: Locator): Locator => place.filter({ visible: true })

/** Searches the open part of the list for `text`. */
async function find(page: Page, text: string): Promise<void> {
  await page.getByRole('searchbox', { name: 'Search' }).fill(text)
  await page.getByRole('button', { name: 'Search' }).click()
  await expect(page).toHaveURL(new RegExp(`q=${text}`))
}

test('shows every detail of a transfer at any width', async ({ page }) => {
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 800 })
    await visit(page, program, '/transfers')
    const row = rowOf(page, 'Ada Lovelace')
    const details = seen(row.locator('summary'))
    if ((await details.count()) > 0) await details.click()
    for (const title of [payroll.employer.signer.publicKey(), ada.address, hash]) {
      await expect(seen(row.getByTitle(title)), `${width}`).toHaveCount(1)
    }
    await expect(seen(row.getByText('Ada Lovelace')), `${width}`).toHaveCount(1)
    await expect(seen(row.getByText('inner', { exact: true })), `${width}`).toHaveCount(1)
    await expect(seen(row.getByText(/^0\.\d+ bid$/).or(row.getByText(/Bid 0\.\d+ XLM$/))), `${width}`).toHaveCount(1)
    const batch = seen(row.getByRole('link', { name: 'November payroll' }))
    await expect(batch, `${width}`).toHaveCount(1)
    expect(await hiddenOf(page), `${width}`).toBeLessThanOrEqual(0)
    await batch.click()
    await expect(page.getByRole('heading', { level: 1, name: 'November payroll' })).toBeVisible()
  }
})

test('shows every detail of a refusal at any width', async ({ page }) => {
  await visit(page, program, '/transfers?view=refused')
  const row = rowOf(page, 'maxTime is more than')
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 800 })
    await expect(seen(row.getByTitle(payroll.employer.signer.publicKey())), `${width}`).toHaveCount(1)
    await expect(seen(row.getByTitle(/^[0-9a-f]{64}$/)), `${width}`).toHaveCount(1)
    await expect(seen(row.getByText('expires-too-late', { exact: true })), `${width}`).toHaveCount(1)
    expect(await hiddenOf(page), `${width}`).toBeLessThanOrEqual(0)
  }
})

test('finds transfers by recipient and by hash', async ({ page }) => {
  await visit(page, program, '/transfers')
  for (const text of [ada.address, hash]) {
    await find(page, text)
    await expect(page.getByRole('row')).toHaveCount(2)
    await expect(rowOf(page, 'Ada Lovelace')).toBeVisible()
  }
  await page.getByRole('link', { name: 'Clear' }).click()
  await expect(page.getByRole('row')).toHaveCount(3)
  await expect(page.getByRole('searchbox')).toHaveValue('')
})

test('searches refusals, and keeps the search term', async ({ page }) => {
  const account = payroll.employer.signer.publicKey()
  await visit(page, program, '/transfers')
  await find(page, account)
  await page.getByRole('link', { name: /^Refused \d/ }).click()
  await expect(page).toHaveURL(/view=refused/)
  await expect(page.getByRole('searchbox')).toHaveValue(account)
  await expect(page.getByRole('row')).toHaveCount(2)
  const inner = await seen(page.getByTitle(/^[0-9a-f]{64}$/)).getAttribute('title')
  await find(page, inner ?? 'no hash')
  await expect(page).toHaveURL(/view=refused/)
  await expect(rowOf(page, 'maxTime is more than')).toBeVisible()
  await find(page, ada.address)
  await expect(page.getByText('Nothing found')).toBeVisible()
})

test('opens the hashes of a row by keyboard, and keeps them open when the page refreshes', async ({ page }) => {
  await page.setViewportSize(PHONE)
  await page.clock.install()
  await visit(page, program, '/transfers')
  const row = rowOf(page, 'Ada Lovelace')
  await row.locator('summary').focus()
  await page.keyboard.press('Enter')
  await expect(seen(row.getByTitle(hash))).toHaveCount(1)
  await expect(page.getByRole('row')).toHaveCount(3)
  await payroll.pay(grace)
  // While nothing changes, the page polls every 15 seconds.
  await page.clock.runFor(15_000)
  await expect(page.getByRole('row')).toHaveCount(4)
  await expect(seen(row.getByTitle(hash))).toHaveCount(1)
})

test.describe('without JavaScript', () => {
  test.use({ javaScriptEnabled: false })

  test('opens hashes and searches', async ({ page }) => {
    await page.setViewportSize(NARROWEST)
    await visit(page, program, '/transfers?view=refused')
    await find(page, payroll.employer.signer.publicKey())
    await expect(rowOf(page, 'maxTime is more than')).toBeVisible()
    await page.goto(`${program.base}/transfers`)
    const row = rowOf(page, 'Ada Lovelace')
    await expect(seen(row.getByTitle(hash))).toHaveCount(0)
    await row.locator('summary').click()
    await expect(seen(row.getByTitle(hash))).toHaveCount(1)
  })
})
