import { expect, type Locator, type Page, test } from '@playwright/test'
import { DESKTOP, enter, findBarriers, NARROWEST, overflowOf, PAGES, PHONE } from './operator.ts'
import { openPayroll, type Payroll } from './payroll.ts'
import { type RunningProgram, runProgram } from './running-program.ts'

const SCRIPT = '<script>document.title = "taken over"</script>'
const IMAGE = '<img src=x onerror="document.title = \'taken over\'">'

const ORGANISATION = 'Northwind <b>Robotics</b>'
const RATE = { amount: '7654.321', currency: 'USDC' }

let program: RunningProgram
let payroll: Payroll
/** the id of a batch of which one payout has failed */
let failed: string
test.beforeAll(async () => {
  test.setTimeout(120_000)
  program = await runProgram()
  payroll = await openPayroll(program)
  await payroll.ask('PATCH', '/me', { orgName: ORGANISATION })
  const [ada, grace, other] = await payroll.hire('Ada Lovelace', 'Grace Hopper', SCRIPT)
  if (!ada || !grace || !other) throw new Error('nobody was hired')
  await payroll.prepare(SCRIPT, [ada, grace, other])
  for (const payee of [ada, grace, other]) await payroll.pay(payee)
  failed = await payroll.prepare('Bonus round', [ada, grace])
  expect(await payroll.fail(grace)).toBe(500)
  await payroll.pay(ada)
  expect(await payroll.overreach(ada)).toBe(422)
  expect((await payroll.ask('POST', '/contractors', { name: IMAGE, rate: RATE })).status).toBe(200)
})
test.afterAll(() => program.stop())

const rowOf = (page: Page, name: string): Locator => page.getByRole('row').filter({ hasText: name })
test('a failed payout is shown with its reason, here and among what failed lately', async ({ page }) => {
  await enter(page, program.base)
  await page.goto(`${program.base}/batches/${failed}`)
  await expect(page.getByRole('region', { name: 'Summary' })).toContainText('1 failed')
  const row = rowOf(page, 'Grace Hopper')
  await expect(row).toContainText('Failed')
  await expect(row).toContainText('the network refused the transfer: txBadSeq')
  await expect(row).toContainText('the sequence number is not the next one')
  await page.goto(`${program.base}/overview`)
  await expect(page.getByRole('region', { name: 'What failed lately' })).toContainText(
    'the sequence number is not the next one',
  )
  await page.goto(`${program.base}/transfers?view=dead`)
  await expect(page.getByRole('row')).toHaveCount(2)
})

test('a refusal is shown with its reason', async ({ page }) => {
  await enter(page, program.base)
  await page.goto(`${program.base}/transfers?view=refused`)
  await expect(rowOf(page, payroll.employer.signer.publicKey()).first()).toContainText(
    'maxTime is more than 330 seconds away',
  )
})

test('the overview has the figures, and the charts say them as a table too', async ({ page }) => {
  await enter(page, program.base)
  const main = page.getByRole('main')
  await expect(main).toContainText('4 settled, 1 failed, 0 in flight in the last 24 hours', { timeout: 40_000 })
  await expect(main).toContainText('4 transfers today')
  await expect(main).toContainText(/Half within \d\.\d s, 95 of 100 within \d\.\d s/)
  await expect(main).toContainText(/Lasts (about|more than)/)
  await expect(main).toContainText(/Held by the vault[\d,]+\.00USDC/)
  await page.getByText('As a table').first().click()
  await expect(page.getByRole('table').first().getByRole('row').last()).toContainText('4')
})

test('a job of the relay is shown with its lanes and timings', async ({ page }) => {
  expect((await payroll.ask('POST', '/batch', { amounts: [1, 2] })).status).toBe(200)
  await enter(page, program.base)
  await page.goto(`${program.base}/jobs`)
  await expect(page.getByRole('region', { name: 'Lanes' }).getByRole('listitem')).toHaveCount(3)
  const job = page.getByRole('list', { name: 'Jobs, newest first' }).getByRole('group')
  await expect(job).toContainText('Completed')
  await expect(job).toContainText('2/2')
  if (!(await job.getAttribute('open'))) await job.locator('summary').click()
  await expect(job.getByRole('row')).toHaveCount(3)
  await expect(job.getByRole('row').last()).toContainText(/Paid.*\d\.\d s.*\d\.\d s/)
})

test('names are text, whatever they look like', async ({ page }) => {
  await enter(page, program.base)
  for (const path of ['/batches', '/contractors', '/audit', `/batches/${failed}`]) {
    await page.goto(`${program.base}${path}`)
    await expect(page.getByRole('main')).toContainText(ORGANISATION)
    expect(await page.title()).not.toContain('taken over')
  }
  await page.goto(`${program.base}/contractors`)
  await expect(rowOf(page, SCRIPT)).toBeVisible()
  await expect(rowOf(page, IMAGE)).toBeVisible()
  await page.goto(`${program.base}/batches`)
  await expect(page.getByRole('link', { name: SCRIPT })).toBeVisible()
  expect(await page.title()).not.toContain('taken over')
  expect(await page.locator('main img, main script').count()).toBe(0)
})

test('no amount is on any page', async ({ page }) => {
  await enter(page, program.base)
  for (const path of [...PAGES.map(([path]) => path), `/batches/${failed}`]) {
    const answer = await page.goto(`${program.base}${path}`)
    const source = (await answer?.text()) ?? ''
    expect(source, path).not.toContain('7654')
    expect(source, path).not.toContain('sealed</')
    expect(source, path).not.toMatch(/encryptedAmount|rateAmount/)
  }
})

test('a search finds an account and a hash; a filter and a page keep their address', async ({ page }) => {
  await enter(page, program.base)
  await page.goto(`${program.base}/transfers`)
  const account = payroll.employer.signer.publicKey()
  const search = page.getByRole('searchbox', { name: 'An account or a hash' })
  await search.fill(account)
  await search.press('Enter')
  await expect(page).toHaveURL(new RegExp(`search=${account}`))
  // Beside its own there may be those of the relay that count against its quota.
  await expect(rowOf(page, `${account} →`)).toHaveCount(5)
  await expect(page.getByRole('row')).toHaveCount(1 + (await rowOf(page, account).count()))
  await page.getByRole('link', { name: 'Expired', exact: true }).click()
  await expect(page).toHaveURL(/view=dead/)
  await expect(page.getByRole('row')).toHaveCount(2)
  await page.getByRole('searchbox').fill('nobody')
  await page.getByRole('button', { name: 'Find' }).click()
  await expect(page.getByText('Nothing found')).toBeVisible()
  await page.goto(`${program.base}/audit`)
  await page.getByLabel('Action').selectOption('organisation.founded')
  await page.getByRole('button', { name: 'Show' }).click()
  await expect(page.getByRole('row')).toHaveCount(2)
  await page.goto(`${program.base}/transfers?cursor=nonsense`)
  await expect(page.getByRole('row').nth(1)).toBeVisible()
})

test('everything can be reached by keyboard', async ({ page }) => {
  await page.goto(`${program.base}/sign-in`)
  await page.keyboard.press('Tab')
  await expect(page.getByLabel('Password')).toBeFocused()
  await page.keyboard.type('a password for the tests')
  await page.keyboard.press('Enter')
  await expect(page).toHaveURL(`${program.base}/overview`)
  await page.goto(`${program.base}/batches`)
  await page.keyboard.press('Tab')
  await expect(page.getByRole('link', { name: 'Skip to the content' })).toBeFocused()
  await expect(page.getByRole('link', { name: 'Skip to the content' })).toBeInViewport()
  await page.keyboard.press('Enter')
  await page.keyboard.press('Tab')
  await expect(page.getByRole('link', { name: 'All' })).toBeFocused()
  // The other five statuses, then the newest batch.
  for (let tabs = 0; tabs < 6; tabs += 1) await page.keyboard.press('Tab')
  await expect(page.getByRole('link', { name: 'Bonus round' })).toBeFocused()
  await page.keyboard.press('Enter')
  await expect(page.getByRole('heading', { level: 1, name: 'Bonus round' })).toBeVisible()
})

const looks = [
  { what: 'on a phone', sizes: [PHONE], colorScheme: 'light' },
  { what: 'in the dark, desktop and phone', sizes: [DESKTOP, PHONE], colorScheme: 'dark' },
] as const

for (const { what, sizes, colorScheme } of looks) {
  test(`axe finds nothing where there is data, ${what}`, async ({ page }) => {
    test.setTimeout(120_000)
    await page.emulateMedia({ colorScheme })
    await enter(page, program.base)
    for (const path of [...PAGES.map(([path]) => path), `/batches/${failed}`]) {
      await page.goto(`${program.base}${path}`)
      await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
      for (const size of sizes) {
        await page.setViewportSize(size)
        expect(await findBarriers(page), `${path} at ${size.width}`).toEqual([])
      }
    }
  })
}

test('no page is wider than a narrow phone, and what matters is on it', async ({ page }) => {
  await enter(page, program.base)
  await page.setViewportSize(NARROWEST)
  for (const path of [...PAGES.map(([path]) => path), `/batches/${failed}`]) {
    await page.goto(`${program.base}${path}`)
    expect(await overflowOf(page), path).toBeLessThanOrEqual(0)
  }
  await expect(rowOf(page, 'Grace Hopper')).toContainText('Failed')
})

test.describe('without JavaScript', () => {
  test.use({ javaScriptEnabled: false })

  test('every page reads as it does with it', async ({ page }) => {
    await enter(page, program.base)
    await expect(page.getByRole('main')).toContainText(/\d settled, \d failed/)
    for (const [path, title] of PAGES) {
      await page.goto(`${program.base}${path}`)
      await expect(page.getByRole('heading', { level: 1, name: title })).toBeVisible()
    }
    await page.goto(`${program.base}/batches`)
    await page.getByRole('link', { name: 'Bonus round' }).click()
    await expect(rowOf(page, 'Grace Hopper')).toContainText('the sequence number is not the next one')
    await expect(page.getByText('Reload for newer figures')).toBeVisible()
  })
})
