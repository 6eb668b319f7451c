import { expect, type Page } from '@playwright/test'
import { test } from './fixtures.ts'
import { DESKTOP, findFaults, hiddenOf, PHONE, visit, WIDTHS } from './operator.ts'
import type { SeededProgram } from './seeded.ts'
import { openAll } from './seeded.ts'

let program: SeededProgram
let addresses: SeededProgram['addresses']
test.beforeAll(({ seeded }) => {
  program = seeded
  addresses = seeded.addresses
})

test('exports exactly the records that a list shows, with its filters', async ({ page }) => {
  await visit(page, program, '/search?q=Grace')
  await page.getByRole('link', { name: 'Grace Hopper' }).first().click()
  const contractor = (await page.getByRole('link', { name: /^All transfers/ }).getAttribute('href')) ?? ''
  for (const address of [
    '/batches?from=2000-01-01&sort=oldest',
    '/batches?status=failed',
    addresses[3] ?? '',
    `${addresses[3]}?status=failed&from=2000-01-01`,
    '/transfers?view=failed',
    '/transfers?view=refused',
    contractor,
    `${contractor}&view=refused`,
    '/contractors?status=ready&to=2000-01-01',
    '/organisations?sort=30d',
    '/jobs?status=completed',
    '/audit?action=batch.failed',
  ]) {
    await visit(page, program, address)
    const found = Number(/^([\d,]+) /.exec(await page.getByRole('status').first().innerText())?.[1]?.replace(',', ''))
    const link = page.getByRole('link', { name: /^These \w+ as CSV$/ })
    const file = found > 0 ? await link.getAttribute('href') : undefined
    const records = file
      ? (await (await page.request.get(`${program.base}${file}`)).text()).trimEnd().split('\r\n').length - 1
      : await link.count()
    expect(records, address).toBe(found)
  }
})

test('sorts the seeded audit log by time', async ({ page }) => {
  await visit(page, program, '/audit')
  const times = await page
    .getByRole('row')
    .locator('time')
    .evaluateAll((all) => all.map((one) => Date.parse(one.getAttribute('datetime') ?? '')))
  expect(times.length).toBeGreaterThan(20)
  expect(times).toEqual(times.toSorted((one, other) => other - one))
})

test('shows which organisation costs most, in a list and in its file', async ({ page }) => {
  await visit(page, program, '/organisations')
  await page.getByRole('link', { name: 'Highest fees, 30 days' }).click()
  await page.waitForURL('**/organisations?sort=30d')
  const rows = await page.getByRole('row').filter({ hasText: 'XLM' }).allInnerTexts()
  const fees = rows.map((row) => Number(/([\d.]+) XLM\s+\d+ transfers(\s+\d+ failed)?\s+[^X]*$/.exec(row)?.[1]))
  expect(fees).toHaveLength(3)
  expect(fees).toEqual(fees.toSorted((one, other) => other - one))
  const file = await (await page.request.get(`${program.base}/organisations.csv`)).text()
  for (const fee of fees) expect(file).toContain(`,${fee}`)
})

/** The visible texts that end in an ellipsis, and figures separated from their unit. */
function findTorn(page: Page): Promise<string[]> {
  return page.getByRole('main').evaluate((main) => {
    main.normalize()
    const texts = document.createNodeIterator(main, NodeFilter.SHOW_TEXT)
    const breaks: string[] = []
    for (let text = texts.nextNode(); text; text = texts.nextNode()) {
      const parent = text.parentElement
      if (!parent?.checkVisibility() || parent.closest('.sr-only')) continue
      if (getComputedStyle(parent).textOverflow === 'ellipsis' && !parent.closest('.hash'))
        breaks.push(`${text.nodeValue}`)
      for (const { 0: figure, index } of (text.nodeValue ?? '').matchAll(/\d (s|min|h|XLM)\b/g)) {
        const range = document.createRange()
        range.setStart(text, index)
        range.setEnd(text, index + figure.length)
        if (new Set([...range.getClientRects()].map(({ top }) => top)).size > 1) breaks.push(`${text.nodeValue}`)
      }
    }
    return breaks
  })
}

test('breaks no line between a figure and its unit, or inside a short email, on a phone', async ({ page }) => {
  await page.setViewportSize(PHONE)
  for (const address of [
    '/batches',
    '/transfers',
    '/transfers?view=failed',
    '/contractors',
    '/organisations',
    '/jobs',
  ]) {
    await openAll(page, program, address)
    expect(await findTorn(page), address).toEqual([])
  }
  await visit(page, program, '/contractors')
  const email = page.getByText('margaret.hamilton@contractors.example').first()
  const lines = await email.evaluate((element) => {
    const range = document.createRange()
    range.selectNodeContents(element)
    return new Set([...range.getClientRects()].map(({ top }) => top)).size
  })
  expect(lines).toBe(1)
})

test('shows the recipient and channel of each transfer of a job on a phone', async ({ page }) => {
  await page.setViewportSize(PHONE)
  await visit(page, program, '/jobs?status=completed')
  await page.locator('tbody a[href^="/jobs/"]').first().click()
  await expect(page.getByRole('heading', { name: 'Timeline' })).toBeVisible()
  const rows = page.getByRole('row').filter({ hasText: 'Paid' })
  expect(await rows.count()).toBe(4)
  for (const row of await rows.all()) {
    await expect(row.getByText(/^Recipient G/).filter({ visible: true })).toHaveCount(1)
    await expect(row.getByText(/^Channel G/).filter({ visible: true })).toHaveCount(1)
  }
})

test('shows the raw entry behind a sentence by keyboard, without JavaScript', async ({ page, browser }) => {
  await visit(page, program)
  const context = await browser.newContext({ javaScriptEnabled: false })
  await context.addCookies(await page.context().cookies())
  const plain = await context.newPage()
  await plain.goto(`${program.base}/audit?action=batch.failed`)
  const row = plain.getByRole('row').nth(1)
  expect(await row.innerText()).not.toContain('batch.failed')
  await row.getByText('Raw entry').press('Enter')
  await expect(row.getByText('"action": "batch.failed"')).toBeVisible()
  await row.getByRole('link', { name: 'Entries of this record' }).click()
  await expect(plain.getByRole('row').filter({ hasText: 'was created by Lighthouse Bakery' })).toHaveCount(1)
  await context.close()
})

test('starts an audit entry with its sentence, and lets the filters be cleared, on a phone', async ({ page }) => {
  await page.setViewportSize(PHONE)
  await visit(page, program, '/audit')
  await expect(page.getByRole('link', { name: 'Clear' })).toHaveCount(0)
  await page.getByText('Filters', { exact: true }).click()
  await page.getByLabel('Action').selectOption('batch.failed')
  await page.getByRole('button', { name: 'Filter' }).click()
  const row = page.getByRole('row').nth(1)
  expect(await row.innerText()).toMatch(/^Batch “.*” failed\s+Raw entry\s+When\s+\d+ \w+ ago/)
  await page.getByRole('link', { name: 'Clear' }).click()
  await expect(page).toHaveURL(`${program.base}/audit`)
  await expect(page.getByLabel('Action')).toHaveValue('')
})

test('lists each record on one line of a desktop', async ({ page }) => {
  for (const address of ['/batches', '/transfers', '/contractors', '/jobs', '/audit?action=batch.created']) {
    await visit(page, program, address)
    const heights = await page
      .locator('tbody tr')
      .evaluateAll((rows) => rows.map((row) => Math.round(row.getBoundingClientRect().height)))
    expect(heights.length, address).toBeGreaterThan(0)
    // A line is 21 pixels high, with 20 around it.
    expect(Math.max(...heights), address).toBeLessThan(48)
  }
  await visit(page, program, '/batches?status=failed')
  await page.locator('tbody').getByRole('link').first().click()
  const failed = page.locator('tbody tr').filter({ hasText: 'the proof does not match' })
  await expect(failed.first()).toBeVisible()
  for (const row of await failed.all()) expect((await row.boundingBox())?.height).toBeLessThan(48)
})

for (const { tag, widths } of WIDTHS) {
  test(`does not clip any list ${widths.join(', ')} pixels wide`, { tag }, async ({ page }) => {
    const cut: string[] = []
    for (const address of ['/batches', '/contractors', '/organisations', '/audit', '/jobs', '/transfers?view=failed']) {
      await visit(page, program, address)
      await expect(page.getByText('Live', { exact: true })).toBeVisible()
      // Times of last year are the widest.
      await page.locator('main time > span + span').evaluateAll((times) => {
        for (const time of times) time.textContent = '30 Nov 2025, 20:30 UTC'
      })
      for (const width of widths) {
        await page.setViewportSize({ width, height: 800 })
        const hidden = await hiddenOf(page)
        if (hidden > 0) cut.push(`${address}, ${width} pixels: ${hidden}`)
      }
    }
    expect(cut).toEqual([])
  })
}

test('begins with its rows on a phone, and shows the filters by a button', async ({ page }) => {
  await page.setViewportSize(PHONE)
  await visit(page, program, '/transfers')
  const filter = page.getByRole('button', { name: 'Filter', exact: true })
  await expect(filter).toBeHidden()
  const first = await page.getByRole('row').nth(1).boundingBox()
  expect(first?.y).toBeLessThan(PHONE.height)
  await page.getByText('Filters', { exact: true }).click()
  await page.getByLabel('From day (UTC)').fill('2026-01-01')
  await filter.click()
  await expect(page).toHaveURL(/from=2026-01-01/)
  await expect(filter).toBeVisible()
  expect(await findFaults(page, PHONE)).toEqual([])
  await page.setViewportSize(DESKTOP)
  await expect(page.getByRole('checkbox', { name: 'Filters' })).toBeHidden()
  await expect(filter).toBeVisible()
})
