import { expect, type Locator, type Page, test } from '@playwright/test'
import { enter } from './operator.ts'
import { openPayroll, type Payee, type Payroll } from './payroll.ts'
import { type RunningProgram, runProgram } from './running-program.ts'

let program: RunningProgram
let payroll: Payroll
let team: Payee[]
test.beforeAll(async () => {
  test.setTimeout(120_000)
  program = await runProgram()
  payroll = await openPayroll(program)
  team = await payroll.hire('Ada Lovelace', 'Grace Hopper', 'Alan Turing')
})
test.afterAll(() => program.stop())

const rowOf = (page: Page, name: string): Locator => page.getByRole('row').filter({ hasText: name })

test('a batch is watched from ready to completed, without a reload', async ({ page }) => {
  const [ada, grace, alan] = team
  if (!ada || !grace || !alan) throw new Error('nobody was hired')
  const id = await payroll.prepare('November payroll', team)
  await enter(page, program.base)
  await expect(page.getByRole('region', { name: 'Batches under way' })).toContainText('November payroll')
  await page.getByRole('region', { name: 'Batches under way' }).getByRole('link', { name: 'November payroll' }).click()
  await expect(page).toHaveURL(`${program.base}/batches/${id}`)
  const summary = page.getByRole('region', { name: 'Summary' })
  await expect(summary).toContainText('Ready')
  await expect(summary).toContainText('0/3')
  let loads = 0
  page.on('load', () => {
    loads += 1
  })
  const first = await payroll.pay(ada)
  await expect(summary).toContainText('Started')
  await expect(summary).toContainText('1/3')
  await expect(rowOf(page, 'Ada Lovelace')).toContainText('Paid')
  await expect(rowOf(page, 'Ada Lovelace').getByTitle(first).filter({ visible: true })).toHaveCount(1)
  await expect(rowOf(page, 'Grace Hopper')).toContainText('Ready')
  await payroll.pay(grace)
  await payroll.pay(alan)
  await expect(summary).toContainText('Completed')
  await expect(summary.getByRole('img', { name: 'Payouts: 3 of 3 paid' })).toBeVisible()
  expect(loads).toBe(0)
})

test('a hidden tab asks for nothing, and a service that is gone is waited for', async ({ page }) => {
  await enter(page, program.base)
  await expect(page.getByText('Live', { exact: true })).toBeVisible()
  await page.route('**/api/health', (route) => route.abort())
  await expect(page.getByText('No connection')).toBeVisible()
  await page.unroute('**/api/health')
  await expect(page.getByText('Live', { exact: true })).toBeVisible()
  // What gets no answer at all is given up, too.
  await page.route('**/api/health', () => undefined)
  await expect(page.getByText('No connection')).toBeVisible({ timeout: 30_000 })
  await page.unroute('**/api/health')
  await expect(page.getByText('Live', { exact: true })).toBeVisible()
  await page.evaluate(() => {
    Object.defineProperty(document, 'hidden', { value: true })
    document.dispatchEvent(new Event('visibilitychange'))
  })
  await expect(page.getByText('Paused')).toBeVisible()
  const asked: string[] = []
  page.on('request', (request) => asked.push(request.url()))
  await page.waitForTimeout(5_000)
  expect(asked).toEqual([])
})

/** Has the tab be hidden, or shown, as many times as is said, in turn; it ends as the last of them. */
function toggle(page: Page, ...hidden: boolean[]): Promise<void> {
  return page.evaluate((turns) => {
    for (const value of turns) {
      Object.defineProperty(document, 'hidden', { value, configurable: true })
      document.dispatchEvent(new Event('visibilitychange'))
    }
  }, hidden)
}

const RESTLESS = Array.from({ length: 20 }, (_, turn) => turn % 2 === 0)

test('looks are two seconds apart and one at a time, however often the tab comes and goes', async ({ page }) => {
  await page.clock.install()
  await enter(page, program.base)
  // From here on time passes when it is told to.
  await page.clock.pauseAt(Date.now() + 3_600_000)
  let looks = 0
  const drawn: string[] = []
  page.on('request', (request) => {
    const { pathname } = new URL(request.url())
    if (pathname === '/api/health') looks += 1
    if (request.headers().rsc) drawn.push(pathname)
  })
  await page.goto(`${program.base}/batches`)
  await expect(page.getByText('Live', { exact: true })).toBeVisible()
  looks = 0
  drawn.length = 0
  await toggle(page, ...RESTLESS)
  await page.clock.runFor(1_999)
  await toggle(page, ...RESTLESS)
  expect(looks).toBe(0)
  const refreshed = page.waitForResponse((response) => response.request().headers().rsc !== undefined)
  await page.clock.runFor(1)
  await refreshed
  await toggle(page, ...RESTLESS)
  expect([looks, drawn]).toEqual([1, ['/batches']])

  // An answer that is long in coming is waited for.
  let answer = () => {}
  await page.route('**/api/health', async (route) => {
    await new Promise<void>((resolve) => {
      answer = resolve
    })
    await route.continue().catch(() => undefined)
  })
  const askAgain = async () => {
    const before = looks
    await expect(async () => {
      await page.clock.runFor(2_000)
      expect(looks).toBeGreaterThan(before)
    }).toPass()
  }
  await askAgain()
  await toggle(page, ...RESTLESS)
  await page.clock.runFor(7_000)
  expect([looks, drawn]).toEqual([2, ['/batches']])

  // When it comes, nobody looks any more.
  await toggle(page, true)
  const answered = page.waitForResponse('**/api/health')
  answer()
  await answered
  await page.clock.runFor(20_000)
  await expect(page.getByText('Paused')).toBeVisible()
  expect([looks, drawn]).toEqual([2, ['/batches']])

  // Or the page is another one.
  await toggle(page, false)
  await askAgain()
  await page.getByRole('link', { name: 'Audit log' }).click()
  await expect(page.getByRole('heading', { level: 1, name: 'Audit log' })).toBeVisible()
  answer()
  await page.clock.runFor(1_500)
  expect([looks, drawn]).toEqual([3, ['/batches', '/audit']])
})
