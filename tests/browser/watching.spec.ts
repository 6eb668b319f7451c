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
