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

/** The title of each attention item, and its answers: people, reason, next step, and the action next to it. */
const ITEMS = [
  [
    /Night shift · Lighthouse Bakery: 4 of 7 unpaid for 3 h/,
    /For ?Lighthouse Bakery \(tessa@lighthouse.example\) · Night shift · (\w+ \w+(, )?){4}/,
    /Why ?.* has sent nothing since; 3 paid/,
    /Next ?Ask the employer to send the remaining 4 payouts.*Email the employer/,
  ],
  [
    /Illustrators · Studio Meridian: transfer to Alan Turing open for \d+ min/,
    /For ?Studio Meridian .*· Illustrators · Alan Turing/,
    /Why ?.*should have settled within 6 minutes/,
    /Next ?Look it up now.*Look up now/,
  ],
  [
    /Weekend shift · Lighthouse Bakery: 2 of 7 payouts failed/,
    /For ?Lighthouse Bakery .*· Weekend shift/,
    /Why ?the proof does not match/,
    /Next ?Ask the employer to send the 2 failed payouts again with a new proof for each.*Email the employer/,
  ],
  [
    /Relay job [0-9a-f]{8} · Lighthouse Bakery: 1 of 4 transfers failed/,
    /For ?Lighthouse Bakery \(tessa@lighthouse.example\) · Grace Hopper/,
    /Why ?no relay channel had enough/,
    /Next ?Ask the employer to pay only those payees.*send USDC .* relay channel G\w{55}.*Email the employer/,
  ],
]

test('shows for each stuck record what happened, since when, for whom, why and what to do next', async ({ page }) => {
  await page.setViewportSize(PHONE)
  await visit(page, program)
  const items = page.getByRole('region', { name: 'Needs attention' }).getByRole('listitem')
  await expect(items).toHaveCount(ITEMS.length)
  for (const [what, ...words] of ITEMS) {
    const item = items.filter({ hasText: what })
    for (const text of [...words, /Since ?.*ago.* UTC/]) await expect(item).toContainText(text)
  }
  const mail = items.filter({ hasText: 'Weekend shift' }).getByRole('link', { name: /^Email the employer/ })
  const { pathname, searchParams } = new URL((await mail.getAttribute('href')) ?? '')
  expect(decodeURIComponent(pathname)).toBe('tessa@lighthouse.example')
  expect(searchParams.get('subject')).toBe('Weekend shift · Lighthouse Bakery: 2 of 7 payouts failed')
  expect(searchParams.get('body')).toMatch(
    /Since: .* UTC\.\r\nPayees: .*\.\r\nWhy: the proof .*\r\n\r\nPlease open your payroll/,
  )
})

test('looks up an overdue transfer from the overview, and returns to it', async ({ page }) => {
  await visit(page, program)
  await page.getByRole('button', { name: 'Look up now' }).click()
  await expect(page).toHaveURL(`${program.base}/overview`)
  await expect(page.getByRole('heading', { level: 1, name: 'Overview' })).toBeVisible()
  await page.goto(`${program.base}/audit?action=transfer.looked-up`)
  await expect(page.getByRole('row').nth(1)).toContainText('Ada Operator')
})

test('links its items to a batch’s last progress and a job’s failures', async ({ page }) => {
  await page.setViewportSize(PHONE)
  await visit(page, program)
  await page.getByRole('link', { name: /^Night shift · / }).click()
  await expect(page.getByRole('region', { name: 'Summary' })).toContainText(/Last progress3 h ago/)
  await page.goto(`${program.base}/overview`)
  await page.getByRole('link', { name: /^Relay job .*1 of 4 transfers/ }).click()
  await expect(page.getByRole('heading', { level: 1, name: /^Job / })).toBeVisible()
  const first = page.getByRole('row').nth(1)
  await expect(first).toContainText(/^2Failed.*no channel has enough to pay it.*Recipient G/)
})

test('draws charts with round ticks, the 95th percentile inside the axis, and bars that lead to a list', async ({
  page,
}) => {
  for (const path of ['/overview', '/overview?range=30d']) {
    await visit(page, program, path)
    for (const title of [/^Transfers per /, /^Settlement time$/]) {
      const chart = page.locator('section').filter({ has: page.getByRole('heading', { name: title }) })
      const ticks = await chart.locator('[data-tick]').allTextContents()
      expect([3, 4], `${path} ${ticks}`).toContain(ticks.length)
      for (const tick of ticks.slice(1)) expect(tick).toMatch(/^[\d,]+(\.\d)?( s| min| h)?$/)
    }
    const line = page.locator('[data-line]')
    await expect(line).toContainText(/^95 % within /)
    const inside = await line.evaluate((one) => {
      const [own, axis] = [one.getBoundingClientRect(), one.parentElement?.getBoundingClientRect() ?? new DOMRect()]
      return own.top >= axis.top && own.bottom <= axis.bottom
    })
    expect(inside, path).toBe(true)
  }
  await page.getByText('As a table').first().click()
  const parts = page.getByRole('table', { name: /^Transfers per/ }).getByRole('row')
  const part = parts.filter({ has: page.getByRole('link') }).last()
  const counts = (await part.getByRole('cell').allTextContents()).slice(1).map(Number)
  await part.getByRole('link').click()
  await expect(page).toHaveURL(/\/transfers\?from=.*&to=/)
  const all = counts.reduce((sum, count) => sum + count, 0)
  await expect(page.getByRole('status').filter({ hasText: /found/ })).toHaveText(new RegExp(`^${all} `))
})

for (const size of [DESKTOP, PHONE]) {
  test(`aligns a chart's time labels with its bars, ${size.width} pixels`, async ({ page }) => {
    await page.setViewportSize(size)
    for (const path of ['/overview', '/overview?range=30d']) {
      await visit(page, program, path)
      for (const title of [/^Transfers per /, /^Settlement time$/]) {
        const chart = page.locator('section').filter({ has: page.getByRole('heading', { name: title }) })
        const { labels, places } = await chart.evaluate(readAxis)
        expect(labels.length, path).toBeGreaterThanOrEqual(4)
        for (const { text, middle } of labels) {
          const place = text === 'now' ? places.at(-1) : places.find(({ from }) => from === text)
          expect(Math.abs(middle - (place?.middle ?? Number.NaN)), `${path} ${text}`).toBeLessThan(1)
        }
      }
      const chart = page.locator('section').filter({ has: page.getByRole('heading', { name: /^Transfers per / }) })
      const { bars, places } = await chart.evaluate(readAxis)
      const counted = places.filter(({ isEmpty }) => !isEmpty)
      expect(bars.length, path).toBeGreaterThan(0)
      expect(bars).toHaveLength(counted.length)
      for (const [index, bar] of bars.entries()) {
        expect(Math.abs(bar - (counted[index]?.middle ?? Number.NaN)), path).toBeLessThan(1)
      }
    }
  })
}

/** The horizontal centres of a chart's labels, parts and bars. Its table names the parts. */
function readAxis(chart: Element) {
  const middleOf = (one: Element) => {
    const { left, width } = one.getBoundingClientRect()
    return left + width / 2
  }
  const drawing = chart.querySelector('svg[preserveAspectRatio]')?.getBoundingClientRect() ?? new DOMRect()
  const rows = [...chart.querySelectorAll('tbody tr')].map((row) => [...row.children].map((cell) => cell.textContent))
  const places = rows.map(([from, ...counts], index) => ({
    from,
    isEmpty: counts.every((count) => count === '0'),
    middle: drawing.left + (drawing.width * (index + 0.5)) / rows.length,
  }))
  return {
    labels: [...chart.querySelectorAll('[data-part]')].map((one) => ({ text: one.textContent, middle: middleOf(one) })),
    places,
    bars: [...new Set([...chart.querySelectorAll('svg[preserveAspectRatio] rect')].map(middleOf))],
  }
}

test('shows the amount held by open bids, and accounts whose spending adds up to the day’s total', async ({ page }) => {
  await visit(page, program)
  const main = page.getByRole('main')
  await expect(main).toContainText('0.0458 XLM reserved for open bids')
  const [, all] = /(\d+) transfers today/.exec((await main.textContent()) ?? '') ?? []
  const parts = await page.getByRole('list', { name: 'Busiest accounts' }).getByRole('listitem').allTextContents()
  const counts = parts.map((part) => Number(/(\d+)(?: of 500)?$/.exec(part)?.[1]))
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(Number(all))
})

test('shows reason, organisation and next step on the page of a stalled batch', async ({ page }) => {
  await visit(page, program, '/batches?status=started')
  await page.getByRole('link', { name: 'Night shift' }).click()
  const own = page.getByRole('region', { name: 'Needs attention' }).getByRole('listitem')
  for (const words of ITEMS[0] ?? []) await expect(own).toContainText(words)
})

test('acknowledges an item with a note, which the audit log and the page of the record show', async ({ page }) => {
  await visit(page, program)
  const item = page.getByRole('listitem').filter({ hasText: /Weekend shift/ })
  await item.getByText('Acknowledge …').click()
  await item.getByRole('textbox', { name: /^Why nothing more/ }).fill('Tessa resends them tonight')
  expect(await findFaults(page, DESKTOP, PHONE)).toEqual([])
  await item.getByRole('button', { name: 'Acknowledge' }).click()
  await expect(page).toHaveURL(`${program.base}/overview`)
  await expect(page.getByRole('heading', { name: /Needs attention/ })).toBeVisible()
  await expect(item).toHaveCount(0)
  await page.goto(`${program.base}${addresses[3]}`)
  await expect(page.getByRole('region', { name: 'Needs attention' })).toContainText(
    /Acknowledged by Ada Operator .*: Tessa resends them tonight/,
  )
  await page.goto(`${program.base}/overview`)
  await page.getByRole('link', { name: 'Acknowledged items' }).click()
  await expect(page.getByRole('row').nth(1)).toContainText(
    'A notice about batch “Weekend shift” was acknowledged by Ada Operator: “Tessa resends them tonight”',
  )
})
