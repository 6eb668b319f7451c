import { expect, type Locator, type Page } from '@playwright/test'
import { test } from './fixtures.ts'
import { visit } from './operator.ts'
import { openPayroll, type Payee, type Payroll } from './payroll.ts'
import { QUICK_LEDGER, type RunningProgram, runProgram } from './running-program.ts'

let program: RunningProgram
let payroll: Payroll
let team: Payee[]
test.beforeAll(async () => {
  program = await runProgram({ ...QUICK_LEDGER, BATCH_ENABLED: 'false' })
  payroll = await openPayroll(program)
  team = await payroll.hire('Ada Lovelace', 'Grace Hopper', 'Alan Turing')
})
test.afterAll(() => program.stop())

const rowOf = (page: Page, name: string): Locator => page.getByRole('row').filter({ hasText: name })

test('follows a batch from ready to completed without a reload', async ({ page }) => {
  const [ada, grace, alan] = team
  if (!ada || !grace || !alan) throw new Error('no contractor was created')
  const id = await payroll.prepare('November payroll', team)
  await page.clock.install()
  await visit(page, program, '/batches')
  await page.getByRole('link', { name: 'November payroll' }).click()
  await expect(page).toHaveURL(`${program.base}/batches/${id}`)
  const summary = page.getByRole('region', { name: 'Summary' })
  await expect(summary).toContainText('Ready')
  await expect(summary).toContainText('0/3')
  let loads = 0
  page.on('load', () => {
    loads += 1
  })
  await payroll.pay(ada)
  // While nothing changes, the page polls every 15 seconds.
  await page.clock.runFor(15_000)
  await expect(summary).toContainText('Started')
  await expect(summary).toContainText('1/3')
  await expect(rowOf(page, 'Ada Lovelace')).toContainText('Paid')
  await expect(rowOf(page, 'Grace Hopper')).toContainText('Ready')
  await payroll.pay(grace)
  await payroll.pay(alan)
  await expect(summary).toContainText('Completed')
  await expect(summary.getByRole('img', { name: 'Payouts: 3 of 3 paid' })).toBeVisible()
  expect(loads).toBe(0)
})

test('sends no requests from a hidden tab, and waits for an unreachable service', async ({ page }) => {
  await page.clock.install()
  // Makes request timeouts follow the page's clock.
  await page.addInitScript(() => {
    AbortSignal.timeout = (ms) => {
      const ending = new AbortController()
      window.setTimeout(() => ending.abort(), ms)
      return ending.signal
    }
  })
  await visit(page, program)
  await expect(page.getByText('Live', { exact: true })).toBeVisible()
  await page.route('**/pulse', (route) => route.abort())
  // While nothing changes, the page polls every 15 seconds.
  await page.clock.runFor(15_000)
  const alarm = page
    .getByRole('main')
    .getByRole('alert')
    .getByText(/No connection since .* UTC/)
  await page.evaluate(() => window.scrollTo(0, document.body.scrollHeight))
  await expect(alarm).toBeInViewport()
  expect(await alarm.evaluate(findFaded)).toEqual([])
  expect(await page.getByRole('heading', { name: 'Settlement time' }).evaluate(findFaded)).not.toEqual([])
  await page.unroute('**/pulse')
  // After a failure, the page polls every 2 seconds.
  await page.clock.runFor(2_000)
  await expect(page.getByText('Live', { exact: true })).toBeVisible()
  // A request without a response times out.
  await page.route('**/pulse', () => undefined)
  await page.clock.runFor(18_500)
  await expect(page.getByText('Waiting for the service')).toBeVisible()
  await page.clock.runFor(8_000)
  await expect(page.getByText(/No connection since .* UTC/)).toBeVisible()
  // The database cannot be reached, say.
  await page.unroute('**/pulse')
  await page.route('**/pulse', (route) => route.fulfill({ status: 503, json: { error: 'unavailable' } }))
  await page.clock.runFor(2_000)
  await expect(page.getByText('Records cannot be read')).toBeVisible()
  await expect(page.getByText('Live', { exact: true })).toBeHidden()
  await page.unroute('**/pulse')
  await page.clock.runFor(2_000)
  await expect(page.getByText('Live', { exact: true })).toBeVisible()
  await page.evaluate(() => {
    Object.defineProperty(document, 'hidden', { value: true })
    document.dispatchEvent(new Event('visibilitychange'))
  })
  await expect(page.getByText('Paused')).toBeVisible()
  const requests: string[] = []
  page.on('request', (request) => requests.push(request.url()))
  await page.clock.runFor(60_000)
  // This request is sent after any that the page may have sent.
  await page.evaluate(() => fetch('/api/health'))
  expect(requests).toEqual([`${program.base}/api/health`])
})

test('shows from the click on a link until its page has arrived that it is loading', async ({ page }) => {
  await visit(page, program, '/batches')
  const held = Promise.withResolvers<void>()
  await page.route(/\/(jobs|batches)/, async (route) => {
    await held.promise
    await route.continue()
  })
  const bar = page.getByRole('progressbar', { name: 'Loading the page' })
  await expect(bar).toBeHidden()
  for (const [link, path] of [
    ['Draft', '/batches?status=draft'],
    ['Jobs', '/jobs'],
  ] as const) {
    await page.getByRole('main').or(page.getByRole('navigation')).getByRole('link', { name: link }).first().click()
    await expect(bar).toBeVisible()
    if (path === '/jobs') held.resolve()
  }
  await expect(page).toHaveURL(`${program.base}/jobs`)
  await expect(bar).toBeHidden()
})

/** The elements around `inner`, and itself, that are turned grey or transparent. */
function findFaded(inner: Element): string[] {
  const faded: string[] = []
  for (let one: Element | null = inner; one; one = one.parentElement) {
    const { filter, opacity } = getComputedStyle(one)
    if (filter !== 'none' || opacity !== '1') faded.push(`${one.className}: ${filter} ${opacity}`)
  }
  return faded
}

/** Hides or shows the tab for each value, in order. */
function toggle(page: Page, ...hidden: boolean[]): Promise<void> {
  return page.evaluate((turns) => {
    for (const value of turns) {
      Object.defineProperty(document, 'hidden', { value, configurable: true })
      document.dispatchEvent(new Event('visibilitychange'))
    }
  }, hidden)
}

const RESTLESS = Array.from({ length: 20 }, (_, turn) => turn % 2 === 0)

test('polls every 15 seconds while idle, and reloads when a record changes', async ({ page }) => {
  await page.clock.install()
  await visit(page, program)
  // From here on, time passes only in runFor.
  await page.clock.pauseAt(Date.now() + 3_600_000)
  const requests: string[] = []
  page.on('request', (request) => {
    const { pathname } = new URL(request.url())
    if (pathname === '/pulse') requests.push('pulse')
    if (request.headers().rsc) requests.push(`page ${pathname}`)
  })
  /** Lets time pass until the next pulse response has arrived. */
  const nextPulse = async (most: number) => {
    const answered = page.waitForResponse('**/pulse')
    await page.clock.runFor(most)
    await (await answered).finished()
    // The page schedules its next request after reading this response, which takes a turn of its event loop and a
    // little time.
    await page.evaluate(() => fetch('/api/health').then((response) => response.text()))
    await page.clock.runFor(100)
  }
  await page.goto(`${program.base}/batches`)
  await expect(page.getByText('Live', { exact: true })).toBeVisible()
  requests.length = 0
  await toggle(page, ...RESTLESS)
  await page.clock.runFor(14_000)
  await toggle(page, ...RESTLESS)
  expect(requests).toEqual([])
  await nextPulse(1_000)
  expect(requests).toEqual(['pulse'])
  await page.clock.runFor(14_000)
  expect(requests).toEqual(['pulse'])
  await nextPulse(1_000)
  expect(requests).toEqual(['pulse', 'pulse'])

  await payroll.ask('POST', '/batches', { name: 'A change' })
  const read = page.waitForResponse((response) => response.request().headers().rsc !== undefined)
  await nextPulse(15_000)
  await read
  await expect(page.getByRole('link', { name: 'A change' })).toBeVisible()
  expect(requests).toEqual(['pulse', 'pulse', 'pulse', 'page /batches'])

  await toggle(page, true)
  await page.clock.runFor(60_000)
  await expect(page.getByText('Paused')).toBeVisible()
  expect(requests).toHaveLength(4)
})
