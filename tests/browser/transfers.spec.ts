import { expect, type Locator, type Page } from '@playwright/test'
import { test } from './fixtures.ts'
import { hiddenOf, NARROWEST, visit, WIDTHS } from './operator.ts'
import { openPayroll, type Payee, type Payroll } from './payroll.ts'
import { QUICK_LEDGER, type RunningProgram, runProgram } from './running-program.ts'

let program: RunningProgram
let payroll: Payroll
let ada: Payee
let grace: Payee
/** the hash of Ada's transfer */
let hash: string
test.beforeAll(async () => {
  program = await runProgram({ ...QUICK_LEDGER, BATCH_ENABLED: 'false' })
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

/** Searches all records for `text`. */
async function find(page: Page, text: string): Promise<void> {
  await page.getByRole('searchbox', { name: 'Search' }).fill(text)
  await page.getByRole('searchbox', { name: 'Search' }).press('Enter')
  await expect(page).toHaveURL(new RegExp(`/search\\?q=${text}`))
}

for (const { tag, widths } of WIDTHS) {
  test(`shows every detail of a transfer on its page, ${widths.join(', ')} pixels wide`, { tag }, async ({ page }) => {
    for (const width of widths) {
      await page.setViewportSize({ width, height: 800 })
      await visit(page, program, '/transfers')
      await expect(seen(rowOf(page, 'Ada Lovelace').getByText(/^0\.\d+$/)), `${width}`).toHaveCount(1)
      expect(await hiddenOf(page), `${width}`).toBeLessThanOrEqual(0)
      await seen(rowOf(page, 'Ada Lovelace').getByRole('link', { name: 'Payment to Ada Lovelace' })).click()
      await expect(page.getByRole('heading', { level: 1, name: /^Transfer / })).toBeVisible()
      const facts = page.locator('dl')
      for (const title of [payroll.employer.signer.publicKey(), ada.address, hash]) {
        const whole = facts.getByTitle(title)
        await expect(whole, `${width}`).toHaveCount(1)
        expect(await whole.evaluate((code) => code.scrollWidth - code.clientWidth)).toBeLessThanOrEqual(0)
      }
      await expect(facts.getByText('inner', { exact: true }), `${width}`).toHaveCount(1)
      await expect(facts.getByText(/^0\.\d+ XLM$/), `${width}`).toHaveCount(2)
      await expect(page.getByRole('region', { name: 'Timeline' }).getByRole('listitem')).toContainText([
        /Settled: succeeded/,
        /Included in ledger \d+.*hash:.*result:\s*txSuccess/,
        /Sent to the network/,
        /Recorded.*inner hash/,
      ])
      await facts.getByRole('link', { name: 'November payroll' }).click()
      await expect(page.getByRole('heading', { level: 1, name: 'November payroll' })).toBeVisible()
    }
  })
}

for (const { tag, widths } of WIDTHS) {
  test(`shows every detail of a refusal, ${widths.join(', ')} pixels wide`, { tag }, async ({ page }) => {
    await visit(page, program, '/transfers?view=refused')
    const row = rowOf(page, 'maxTime is more than')
    for (const width of widths) {
      await page.setViewportSize({ width, height: 800 })
      await expect(seen(row.getByTitle(payroll.employer.signer.publicKey())), `${width}`).toHaveCount(1)
      await expect(seen(row.getByTitle(/^[0-9a-f]{64}$/)), `${width}`).toHaveCount(1)
      await expect(seen(row.getByText('expires-too-late', { exact: true })), `${width}`).toHaveCount(1)
      expect(await hiddenOf(page), `${width}`).toBeLessThanOrEqual(0)
    }
  })
}

test('finds a contractor by address, a transfer by hash, and the effects of a request by its id', async ({ page }) => {
  await visit(page, program, '/batches')
  await find(page, ada.address)
  await page.getByRole('link', { name: 'Ada Lovelace' }).click()
  await expect(page.getByRole('heading', { level: 1, name: 'Ada Lovelace' })).toBeVisible()
  await find(page, hash)
  await expect(page.getByRole('link', { name: /^Payout / })).toBeVisible()
  await page.getByRole('link', { name: /^Transfer of G/ }).click()
  await expect(page.getByRole('heading', { level: 1, name: /^Transfer / })).toBeVisible()
  await page.goto(`${program.base}/audit?action=batch.started`)
  const entry = page.getByRole('row').nth(1)
  await entry.getByText('Raw entry').click()
  await entry.getByRole('link', { name: 'Effects of its request' }).click()
  await expect(page.getByRole('link', { name: /^Transfer of G/ })).toBeVisible()
  await expect(page.getByRole('table', { name: 'Entries of the audit log' })).toContainText('was accepted from')
})

test('leads from an account to its transfers and refusals', async ({ page }) => {
  await visit(page, program)
  await find(page, payroll.employer.signer.publicKey())
  await page.getByRole('link', { name: 'Refused transfers of this account' }).click()
  await expect(rowOf(page, 'maxTime is more than')).toBeVisible()
  await page.getByRole('link', { name: 'expires-too-late' }).filter({ visible: true }).click()
  await expect(page.getByRole('link', { name: /Remove the filter Reason: expires-too-late/ })).toBeVisible()
  await page.getByRole('link', { name: /^All \d/ }).click()
  await expect(page).toHaveURL(/reason=expires-too-late/)
  await expect(page.getByText('Nothing found')).toBeVisible()
})

test('adds a transfer to the open list', async ({ page }) => {
  await page.clock.install()
  await visit(page, program, '/transfers')
  await expect(page.getByRole('row')).toHaveCount(3)
  await payroll.pay(grace)
  // While nothing changes, the page polls every 15 seconds.
  await page.clock.runFor(15_000)
  await expect(page.getByRole('row')).toHaveCount(4)
})

test.describe('without JavaScript', () => {
  test.use({ javaScriptEnabled: false })

  test('searches', async ({ page }) => {
    await page.setViewportSize(NARROWEST)
    await visit(page, program, '/transfers?view=refused')
    await find(page, ada.address)
    await expect(page.getByRole('link', { name: 'Ada Lovelace' })).toBeVisible()
  })
})
