import { expect, type Locator, type Page, test } from '@playwright/test'
import { hiddenOf, NARROWEST, PHONE, visit, WIDTHS } from './operator.ts'
import { openPayroll, type Payee, type Payroll } from './payroll.ts'
import { QUICK_LEDGER, type RunningProgram, runProgram } from './running-program.ts'

let program: RunningProgram
let payroll: Payroll
let ada: Payee
let grace: Payee
/** the hash of a transfer that pays Ada */
let hash: string
test.beforeAll(async () => {
  program = await runProgram(QUICK_LEDGER)
  payroll = await openPayroll(program)
  const [first, second] = await payroll.hire('Ada Lovelace', 'Grace Hopper')
  if (!first || !second) throw new Error('nobody was hired')
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

/** Looks for `text` in the part of the list that is open. */
async function find(page: Page, text: string): Promise<void> {
  await page.getByRole('searchbox', { name: 'Search' }).fill(text)
  await page.getByRole('button', { name: 'Search' }).click()
  await expect(page).toHaveURL(new RegExp(`q=${text}`))
}

test('all of a transfer can be read at any width', async ({ page }) => {
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

test('all of a refusal can be read at any width', async ({ page }) => {
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

test('a search finds who is paid, and a hash', async ({ page }) => {
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

test('refusals are searched too, and keep what was looked for', async ({ page }) => {
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

test('the hashes of a row open by keyboard, and stay open while the page is kept fresh', async ({ page }) => {
  await page.setViewportSize(PHONE)
  await page.clock.install()
  await visit(page, program, '/transfers')
  const row = rowOf(page, 'Ada Lovelace')
  await row.locator('summary').focus()
  await page.keyboard.press('Enter')
  await expect(seen(row.getByTitle(hash))).toHaveCount(1)
  await expect(page.getByRole('row')).toHaveCount(3)
  await payroll.pay(grace)
  // While nothing moves, it is 15 seconds until the next question.
  await page.clock.runFor(15_000)
  await expect(page.getByRole('row')).toHaveCount(4)
  await expect(seen(row.getByTitle(hash))).toHaveCount(1)
})

test.describe('without JavaScript', () => {
  test.use({ javaScriptEnabled: false })

  test('hashes open, and a search works', async ({ page }) => {
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
