import { expect } from '@playwright/test'
import { test } from './fixtures.ts'
import { DESKTOP, findFaults, PAGES, PHONE, visit } from './operator.ts'
import { type RunningProgram, runProgram } from './running-program.ts'
import { ALLOWANCE, emptyPageBytes, scriptBytes } from './script-bytes.ts'

let program: RunningProgram
test.beforeAll(async () => {
  program = await runProgram()
})
test.afterAll(() => program.stop())

test('lists missing features on the overview with their variables', async ({ page }) => {
  await visit(page, program)
  const off = page.getByRole('region', { name: 'Not configured' }).getByRole('listitem')
  await expect(off).toContainText(['SMTP_URL, MAIL_FROM', 'CRON_SECRET', 'METRICS_TOKEN'])
  await expect(off).toHaveCount(3)
})

test('reports a sponsor without contracts as off', { tag: '@long' }, async ({ page }) => {
  const idle = await runProgram({ SPONSOR_CONTRACTS: 'none', BATCH_ENABLED: 'false' })
  try {
    await visit(page, idle)
    await expect(page.getByRole('region', { name: 'Health' })).toContainText('nothing to pay for')
    await expect(page.getByRole('region', { name: 'Needs attention' })).toContainText('Every transfer is refused')
  } finally {
    await idle.stop()
  }
})

const NEXT_STEPS = {
  '/batches': 'POST /batches',
  '/transfers': 'POST /transfer',
  '/transfers?view=refused': 'listed here with the reason',
  '/contractors': 'POST /contractors',
  '/organisations': 'The first contractor, batch, webhook or name',
  '/jobs': 'POST /batch',
}

test('shows the next step on every empty page, with each request on one line', async ({ page }) => {
  await page.setViewportSize(PHONE)
  for (const [path, words] of Object.entries(NEXT_STEPS)) {
    await visit(page, program, path)
    await expect(page.getByRole('main')).toContainText(words)
    const lines = await page
      .getByRole('main')
      .locator('code')
      .evaluateAll((all) => all.map((code) => code.getClientRects().length))
    expect(lines, path).toEqual(lines.map(() => 1))
  }
})

test('has no accessibility violations or clipped content on a phone', async ({ page }) => {
  for (const path of ['/', '/nowhere', '/sign-in?problem=wrong']) {
    await page.goto(`${program.base}${path}`)
    expect(await findFaults(page, PHONE), path).toEqual([])
  }
  await visit(page, program)
  expect(await findFaults(page, PHONE)).toEqual([])
})

test('has no accessibility violations or clipped content on any page at any size', { tag: '@long' }, async ({
  page,
}) => {
  for (const path of ['/', '/nowhere', '/sign-in?problem=wrong']) {
    await page.goto(`${program.base}${path}`)
    expect(await findFaults(page, DESKTOP), path).toEqual([])
  }
  for (const [path, title] of PAGES) {
    await visit(page, program, path)
    await expect(page.getByRole('heading', { level: 1, name: title })).toBeVisible()
    expect(await findFaults(page, DESKTOP, PHONE), path).toEqual([])
  }
})

test('follows the dark colour scheme', async ({ page }) => {
  const background = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor)
  await page.emulateMedia({ colorScheme: 'light' })
  await page.goto(program.base)
  const light = await background()
  await page.emulateMedia({ colorScheme: 'dark' })
  expect(await background()).not.toBe(light)
})

test('loads at most 25 kB more scripts on a dashboard page than on an empty one', async ({ browser, page }) => {
  const empty = await emptyPageBytes(browser, program.base)
  await visit(page, program)
  const storageState = await page.context().storageState()
  const sizes = PAGES.map(async ([path]) => {
    const more = (await scriptBytes(browser, `${program.base}${path}`, { storageState })) - empty
    expect(more, path).toBeGreaterThan(0)
    expect(more, path).toBeLessThanOrEqual(ALLOWANCE)
  })
  await Promise.all(sizes)
})

test('requests no other host and prefetches no other page', async ({ page, context }) => {
  const hosts = new Set<string>()
  const ahead: string[] = []
  context.on('request', (request) => {
    hosts.add(new URL(request.url()).host)
    if (request.headers()['next-router-prefetch'] !== undefined) ahead.push(request.url())
  })
  await visit(page, program)
  const visits = ['/nowhere', ...PAGES.map(([path]) => path)].map(async (path) => {
    const tab = await context.newPage()
    await tab.goto(`${program.base}${path}`, { waitUntil: 'networkidle' })
  })
  await Promise.all(visits)
  expect([...hosts]).toEqual([new URL(program.base).host])
  expect(ahead).toEqual([])
})

test('reports on the overview that all is well, and the next step', async ({ page }) => {
  await visit(page, program)
  const health = page.getByRole('region', { name: 'Health' })
  for (const word of ['Reachable', 'Following', 'Paying']) await expect(health).toContainText(word)
  // The relay starts in the background. That changes no record, so the page doesn't reload automatically.
  await expect(async () => {
    await page.reload()
    expect(await health.textContent()).toContain('Running')
  }).toPass()
  const main = page.getByRole('main')
  await expect(page.getByRole('region', { name: 'Needs attention' })).toContainText(
    'All is well: nothing needs your attention.',
  )
  await expect(main).toContainText('npm run demo')
  await expect(main).toContainText('9,999.00XLM')
  await expect(main).toContainText('Network: local')
  await expect(main).toContainText('No transfers in the last 24 hours')
  await expect(page.getByText('The operator cannot see pay')).toBeVisible()
})
