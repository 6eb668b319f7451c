import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, type Page } from '@playwright/test'
import { openTestNetwork } from '#lib/cli/client/participants.ts'
import {
  DESKTOP,
  expandAll,
  findBarriers,
  findFaults,
  hiddenOf,
  NARROWEST,
  overflowOf,
  PAGES,
  PHONE,
  visit,
  WIDTHS,
} from './operator.ts'
import { type RunningProgram, runProgram, test } from './running-program.ts'

let directory: string
let program: RunningProgram
/** the address of every operator page, with few seeded rows because each press of Tab takes time */
let addresses: string[]
test.beforeAll(async ({ browser }) => {
  directory = mkdtempSync(join(tmpdir(), 'payroll-seeded-'))
  execFileSync(process.execPath, ['lib/cli/seed.ts'], { env: { ...process.env, DATA_DIR: directory } })
  program = await runProgram({ DATA_DIR: directory })
  const page = await browser.newPage()
  await visit(page, program, '/batches?status=failed')
  const failed = (await page.getByRole('link', { name: 'Weekend shift' }).getAttribute('href')) ?? ''
  const records = []
  for (const list of ['/transfers?view=failed', '/jobs?status=failed', '/contractors?status=ready', '/organisations']) {
    await page.goto(`${program.base}${list}`)
    const path = new URL(list, program.base).pathname
    records.push((await page.locator(`tbody a[href^="${path}/"]`).first().getAttribute('href')) ?? '')
  }
  await page.goto(`${program.base}${failed}`)
  records.push((await page.locator('tbody a[href^="/payouts/"]').last().getAttribute('href')) ?? '')
  await page.close()
  addresses = [
    '/overview',
    '/overview?range=30d',
    '/batches?status=started',
    failed,
    ...records,
    '/transfers?view=failed',
    '/transfers?view=refused',
    '/transfers?account=nobody',
    '/transfers?view=gone',
    '/search',
    '/search?q=grace',
    '/search?q=nobody',
    '/contractors?status=onboarding',
    '/organisations',
    '/jobs',
    '/audit?action=batch.failed',
    `/ledger/${await someTransaction()}`,
    `/ledger/${'0'.repeat(64)}`,
  ]
})
test.afterAll(async () => {
  await program?.stop()
  rmSync(directory, { recursive: true, force: true })
})

/** The hash of a transaction in the service's ledger. */
async function someTransaction(): Promise<string> {
  const { rpc } = await openTestNetwork(program.deploymentUrl)
  const { transactions } = await rpc.getTransactions({ startLedger: 2, pagination: { limit: 1 } })
  return transactions[0]?.txHash ?? ''
}

/** Opens the page at `address` and expands everything on it. */
async function openAll(page: Page, address: string): Promise<void> {
  await visit(page, program, address)
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
  await expect(page.getByText('Live', { exact: true })).toBeVisible()
  await expandAll(page.locator('body'))
}

/** Tabs through the page; resolves to the elements it does not reach, and those without a focus outline. */
async function walkByTab(page: Page): Promise<{ targets: number; unreached: string[]; unmarked: string[] }> {
  const targets = await page.evaluate(() => {
    const all = [...document.querySelectorAll<HTMLElement>('a[href], button, input, select, textarea, summary')].filter(
      // A chart's bars are for pointers only: its table has the same links.
      (one) =>
        one.checkVisibility() && one.getAttribute('type') !== 'hidden' && one.closest('[aria-hidden="true"]') === null,
    )
    const nameOf = (one: HTMLElement) => `${one.tagName} ${one.getAttribute('aria-label') ?? one.textContent}`
    const reached = new Set<HTMLElement>()
    const unmarked = new Set<string>()
    document.addEventListener('focusin', ({ target }) => {
      const one = target as HTMLElement
      reached.add(one)
      const { outlineStyle, outlineWidth } = getComputedStyle(one)
      if (outlineStyle === 'none' || Number.parseFloat(outlineWidth) < 1) unmarked.add(nameOf(one))
    })
    Reflect.set(window, 'tellWalk', () => ({
      targets: all.length,
      unreached: all.filter((one) => !reached.has(one)).map(nameOf),
      unmarked: [...unmarked],
    }))
    ;(document.activeElement as HTMLElement | null)?.blur()
    return all.length
  })
  const report = () =>
    page.evaluate(() => (Reflect.get(window, 'tellWalk') as () => never)()) as ReturnType<typeof walkByTab>
  for (let pressed = 0; pressed < targets; pressed += 1) await page.keyboard.press('Tab')
  // A date field takes several presses, so there are more presses than targets.
  let walk = await report()
  for (let more = 0; more < 40 && walk.unreached.length > 0; more += 1) {
    await page.keyboard.press('Tab')
    walk = await report()
  }
  return walk
}

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
  await page.getByText('Look up now …').click()
  await page.getByRole('textbox', { name: /^Why, for the audit log/ }).fill('the employer asks')
  await page.getByRole('button', { name: 'Look up now' }).click()
  await expect(page).toHaveURL(`${program.base}/overview`)
  await expect(page.getByRole('heading', { level: 1, name: 'Overview' })).toBeVisible()
  await page.goto(`${program.base}/audit?action=transfer.looked-up`)
  await expect(page.getByRole('row').nth(1)).toContainText(/note:\s*the employer asks.*Ada Operator/)
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
  await expect(first).toContainText(/^2Failed.*no channel has enough to pay it.*to G/)
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

test('seeds open, accepted and expired invites', async ({ page }) => {
  await visit(page, program, '/contractors')
  for (const words of [/Open until \d+ \w{3}$/, /^Accepted$/, /^Expired$/]) {
    await expect(page.getByRole('cell', { name: words }).first()).toBeVisible()
  }
})

test('links a transaction to its transfer only if it has one', async ({ page }) => {
  await visit(page, program, `/ledger/${'0'.repeat(64)}`)
  await expect(page.getByRole('main').getByRole('link', { name: 'Transfers' })).toHaveAttribute('href', '/transfers')
  await page.setViewportSize(PHONE)
  const hash = page.locator('.hash[data-whole] code')
  expect(await hash.evaluate((code) => code.scrollWidth - code.clientWidth)).toBeLessThanOrEqual(0)
  expect(await hash.evaluate((code) => code.clientWidth)).toBeGreaterThan(100)
  await page.setViewportSize(DESKTOP)
  await page.goto(`${program.base}/transfers?view=failed`)
  await page.locator('tbody a[href^="/transfers/"]').filter({ visible: true }).first().click()
  await page.getByRole('main').locator('a[href^="/ledger/"]').first().click()
  await page.getByRole('link', { name: 'Its transfer' }).click()
  await expect(page.getByRole('heading', { level: 1, name: /^Transfer / })).toBeVisible()
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
    '/organisations',
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

test('keeps the frame on the page of an unknown record', async ({ page }) => {
  for (const path of [`/batches/${crypto.randomUUID()}`, '/ledger/none']) {
    const response = page.waitForResponse(`${program.base}${path}`)
    await visit(page, program, path)
    expect((await response).status()).toBe(404)
    await expect(page.getByRole('heading', { level: 1 })).toHaveText('There is nothing here')
    await expect(page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Batches' })).toBeVisible()
    expect(await findFaults(page, DESKTOP, PHONE)).toEqual([])
  }
})

test('keeps the frame of an unknown record without JavaScript', async ({ page, browser }) => {
  await visit(page, program)
  const context = await browser.newContext({ javaScriptEnabled: false })
  await context.addCookies(await page.context().cookies())
  const plain = await context.newPage()
  for (const path of [`/batches/${crypto.randomUUID()}`, '/transfers/none', '/ledger/none', '/docs/none']) {
    expect((await plain.goto(`${program.base}${path}`))?.status(), path).toBe(404)
    await expect(plain.getByRole('heading', { level: 1 })).toHaveText('There is nothing here')
    await expect(plain.getByRole('navigation')).toBeVisible()
  }
  await context.close()
})

test('shows the current page, the current tab and the connection with forced colours', async ({ page }) => {
  await page.emulateMedia({ forcedColors: 'active' })
  await visit(page, program, '/batches?status=failed')
  await expect(page.getByText('Live', { exact: true })).toBeVisible()
  const current = page.locator('[aria-current]:not([aria-current=false])')
  await expect(current).toHaveText(['Batches', /^Failed/, 'Newest'])
  for (const one of await current.all()) await expect(one).toHaveCSS('outline-style', 'solid')
  await expect(page.locator('.live-dot')).toHaveCSS('border-top-width', '3px')
})

test('prints a record without controls, and its hashes in full', async ({ page }) => {
  await visit(page, program, addresses[4] ?? '')
  const paper = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor)
  await page.emulateMedia({ media: 'screen', colorScheme: 'light' })
  const light = await paper()
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' })
  expect(await paper()).toBe(light)
  await expect(page.getByRole('heading', { level: 1, name: /^Transfer / })).toBeVisible()
  for (const control of [
    page.getByRole('navigation'),
    page.getByRole('search'),
    page.getByText('Live', { exact: true }),
  ]) {
    await expect(control.filter({ visible: true })).toHaveCount(0)
  }
  const cut = await page
    .locator('.hash code')
    .filter({ visible: true })
    .evaluateAll((all) => all.filter((code) => code.scrollWidth > code.clientWidth).length)
  expect(cut).toBe(0)
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
    await openAll(page, address)
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
    await expect(row.getByText(/^to G/).filter({ visible: true })).toHaveCount(1)
    await expect(row.getByText(/^via G/).filter({ visible: true })).toHaveCount(1)
  }
})

test('links every contractor to its transfers and relay jobs, even without a payout', async ({ page }) => {
  await visit(page, program, '/contractors?status=inactive')
  await page.locator('tbody').getByRole('link').first().click()
  await expect(page.getByText('Payouts', { exact: true })).toHaveCount(0)
  await page.getByRole('link', { name: 'Relay jobs' }).click()
  await expect(page).toHaveURL(/\/jobs\?contractor=/)
  await expect(page.getByRole('link', { name: /^Remove the filter Contractor/ })).toBeVisible()
})

test('links a payout to its transfer, contractor, batch and organisation, and shows its timeline', async ({ page }) => {
  await visit(page, program, addresses[8] ?? '')
  await expect(page.getByRole('heading', { level: 1, name: 'Payout to Barbara Liskov' })).toBeVisible()
  const timeline = page.getByRole('region', { name: 'Timeline' }).getByRole('listitem')
  await expect(timeline).toContainText([
    /Settled: failed.*transfer:\s*[0-9a-f]{8}/,
    /Sent to the network.*hash:/,
    /Recorded.*inner hash:/,
    /Payout created/,
  ])
  const links = page.getByRole('main').locator('dl').getByRole('link')
  const hrefs = await links.evaluateAll((all) => all.map((one) => one.getAttribute('href') ?? ''))
  for (const [path, title] of [
    ['/transfers/', /^Transfer /],
    ['/contractors/', 'Barbara Liskov'],
    ['/batches/', 'Weekend shift'],
    ['/organisations/', 'Lighthouse Bakery'],
  ] as const) {
    await page.goto(`${program.base}${hrefs.find((href) => href.startsWith(path))}`)
    await expect(page.getByRole('heading', { level: 1, name: title })).toBeVisible()
    await expect(page.getByRole('region', { name: 'Timeline' })).toBeVisible()
  }
})

test('starts an audit entry with its action, and lets the filters be cleared, on a phone', async ({ page }) => {
  await page.setViewportSize(PHONE)
  await visit(page, program, '/audit')
  await expect(page.getByRole('link', { name: 'Clear' })).toHaveCount(0)
  await page.getByLabel('Action').selectOption('batch.failed')
  await page.getByRole('button', { name: 'Filter' }).click()
  const row = page.getByRole('row').nth(1)
  expect(await row.innerText()).toMatch(/^batch\.failed\s+\d+ \w+ ago.*Organisation\s.*By\s.*Record\s/s)
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

test('shows the addresses of a record in full on its page', async ({ page }) => {
  for (const path of [addresses[5], addresses.find((address) => /^\/ledger\/.*[1-9a-f]/.test(address))]) {
    await visit(page, program, path)
    const codes = page.getByRole('main').locator('dl .hash code')
    const cut = await codes.evaluateAll((all) => all.map((code) => code.scrollWidth - code.clientWidth))
    expect(cut.length, path).toBeGreaterThan(0)
    expect(Math.max(...cut), path).toBeLessThanOrEqual(0)
  }
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

test('covers every operator page', () => {
  const pathOf = (address: string) => new URL(address, program.base).pathname
  expect(addresses.map(pathOf)).toEqual(expect.arrayContaining(PAGES.map(([address]) => pathOf(address))))
})

test('is accessible and unclipped with everything open on a phone', async ({ page }) => {
  await page.setViewportSize(PHONE)
  for (const address of addresses) {
    await openAll(page, address)
    expect(await findBarriers(page), address).toEqual([])
    expect(await overflowOf(page), address).toBeLessThanOrEqual(0)
  }
})

for (const [size, walked] of [
  [DESKTOP, DESKTOP],
  [NARROWEST, PHONE],
] as const) {
  const name = `is accessible, unclipped and reachable by Tab with everything open, ${size.width} pixels`
  test(name, { tag: '@long' }, async ({ page }) => {
    for (const address of addresses) {
      await page.setViewportSize(size)
      await openAll(page, address)
      expect(await findFaults(page, size), address).toEqual([])
      await page.setViewportSize(walked)
      const { targets, ...missed } = await walkByTab(page)
      expect(targets, address).toBeGreaterThan(5)
      expect(missed, address).toEqual({ unreached: [], unmarked: [] })
    }
  })
}

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
  await expect(page.getByRole('row').nth(1)).toContainText(/attention\.acknowledged.*payoutsFailed.*Ada Operator/)
})
