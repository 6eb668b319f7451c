import { expect, type Page } from '@playwright/test'
import { GUIDES } from '#lib/api/reference/guides.ts'
import { reference } from '#lib/api/reference/reference.ts'
import { REFUSALS } from '#lib/refusal/refusal.ts'
import { test } from './fixtures.ts'
import { DESKTOP, expandAll, findFaults, NARROWEST, PHONE } from './operator.ts'
import type { RunningProgram } from './running-program.ts'

let program: RunningProgram
test.beforeAll(({ shared }) => {
  program = shared
})

/** Opens a page of the reference, and collects the browser's errors and the requested origins. */
async function open(page: Page, path: string) {
  const complaints: string[] = []
  const origins = new Set<string>()
  page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()))
  page.on('pageerror', (error) => complaints.push(error.message))
  page.on('request', (request) => origins.add(new URL(request.url()).origin))
  await page.goto(`${program.base}${path}`)
  await expect(page.getByRole('searchbox', { name: 'Filter the operations' })).toBeVisible()
  return { complaints, origins }
}

const operation = (page: Page, id: string) => page.locator(`article[id="${id}"]`)

/** Opens the form of an operation and sends its example. */
async function send(page: Page, id: string) {
  const article = operation(page, id)
  await article.getByText('Try it').click()
  await article.getByRole('button', { name: 'Send the request' }).click()
  return article.locator('[aria-live]')
}

test('describes every operation once, requests only its own origin, and violates no policy', async ({ page }) => {
  const { complaints, origins } = await open(page, '/docs')
  for (const { slug, operations } of reference()) {
    await page.goto(`${program.base}/docs/${slug}`)
    await expect(page.locator('article')).toHaveCount(operations.length)
    for (const { id, summary } of operations) {
      await expect(operation(page, id).getByRole('heading', { level: 2, name: summary, exact: true })).toBeVisible()
    }
  }
  await expect(await send(page, 'getHealth')).toContainText('"ok": true')
  expect(complaints).toEqual([])
  expect([...origins]).toEqual([program.base])
})

test('leads from the filter and from a deep link to an operation', async ({ page }) => {
  await open(page, '/docs')
  const navigation = page.getByRole('navigation', { name: 'Operations' })
  await navigation.getByRole('searchbox').fill('post batches')
  await expect(navigation.getByRole('status')).toHaveText(/^[2-9] operations$/)
  await expect(navigation.getByRole('link', { name: 'GET /batches', exact: true })).toHaveCount(0)
  await navigation.getByRole('link', { name: 'POST /batches/{id}/ready' }).click()
  await expect(page).toHaveURL(/\/docs\/batches#/)
  const id = new URL(page.url()).hash.slice(1)
  await page.goto(page.url())
  await page.reload()
  await expect(operation(page, id)).toBeInViewport()
})

for (const [kind, name] of [
  ['ledger', 'Sign in with a new wallet'],
  ['idp', 'Sign in with an email'],
] as const) {
  test(`signs in a test user of kind ${kind} on a phone, and keeps the session in this tab only`, async ({
    page,
    context,
  }) => {
    await page.setViewportSize(PHONE)
    const { complaints } = await open(page, '/docs')
    await page.getByRole('button', { name }).click()
    const session = page.getByRole('region', { name: 'Session', exact: true })
    await expect(session).toContainText(`(${kind})`)
    await page.goto(`${program.base}/docs/me`)
    await expect(session).toContainText(`(${kind})`)
    await expect(await send(page, 'getMe')).toContainText(`"kind": "${kind}"`)
    expect(await findFaults(page, PHONE, NARROWEST)).toEqual([])
    const other = await context.newPage()
    await other.goto(`${program.base}/docs/me`)
    await expect(other.getByRole('region', { name: 'Session', exact: true })).toContainText('No session')
    await session.getByRole('button', { name: 'Forget the session' }).click()
    await expect(session).toContainText('No session')
    expect(complaints).toEqual([])
  })
}

test('copies the request as curl before it is sent, with its values', async ({ page, context }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  await open(page, '/docs/contractors')
  const article = operation(page, 'createContractor')
  await article.getByText('Try it').click()
  await article.getByRole('textbox', { name: 'Body' }).fill(`{ "name": "Ada's" }`)
  await article.getByRole('button', { name: 'Copy: curl: POST /contractors' }).click()
  await expect(page.getByText('Copied')).toBeVisible()
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(
    [
      `curl -X POST '${program.base}/api/contractors' \\`,
      `  -H 'Authorization: Bearer SESSION' \\`,
      `  -H 'Content-Type: application/json' \\`,
      `  -d '{ "name": "Ada'\\''s" }'`,
    ].join('\n'),
  )
  await article.getByRole('button', { name: 'Send the request' }).click()
  await expect(article.locator('[aria-live]')).toContainText('missing bearer token')
})

test('lists every refusal code once, with one example for each status', async ({ page }) => {
  await open(page, '/docs/errors')
  const codes = await page.locator('tbody th code').allTextContents()
  expect(codes).toEqual(Object.values(REFUSALS).flatMap(Object.keys))
  expect(new Set(codes).size).toBe(codes.length)
  await expect(page.locator('figure')).toHaveCount(await page.locator('section[id^="status-"]').count())
  await page.goto(`${program.base}/docs/batches`)
  const errors = page.locator('article').first().getByText('Errors')
  await errors.click()
  await page.locator('article').first().getByRole('link', { name: '401' }).click()
  await expect(page).toHaveURL(`${program.base}/docs/errors#status-401`)
})

test('works without JavaScript: navigation, fields, errors and the command', async ({ browser }) => {
  const page = await browser.newPage({ javaScriptEnabled: false })
  await page.goto(`${program.base}/docs`)
  await page
    .getByRole('navigation', { name: 'Operations' })
    .getByRole('link', { name: 'POST /contractors', exact: true })
    .click()
  const article = operation(page, 'createContractor')
  await expect(article.getByRole('rowheader', { name: 'name required' })).toBeVisible()
  await expect(article).toContainText(`curl -X POST '${program.base}/api/contractors'`)
  await page.close()
})

/** One page of each kind; with `@long`, all others. */
const KINDS = ['/docs', '/docs/errors', '/docs/contractors', '/docs/guides/api']
const OTHERS = [
  ...reference().map(({ slug }) => `/docs/${slug}`),
  ...Object.keys(GUIDES).map((name) => `/docs/guides/${name}`),
].filter((path) => !KINDS.includes(path))

test('has no accessibility violations and fits a phone, light and dark', async ({ page }) => {
  await expectNoFaults(page, KINDS, PHONE)
})

test('has no accessibility violations on any page at any size', { tag: '@long' }, async ({ page }) => {
  await expectNoFaults(page, KINDS, DESKTOP)
  await expectNoFaults(page, OTHERS, DESKTOP, PHONE)
})

async function expectNoFaults(page: Page, paths: readonly string[], ...sizes: (typeof PHONE)[]): Promise<void> {
  for (const path of paths) {
    await open(page, path)
    await expandAll(page.getByRole('main'))
    expect(await findFaults(page, ...sizes), path).toEqual([])
  }
}

test('links every guide, and the guides’ links lead to pages', { tag: '@long' }, async ({ page, request }) => {
  test.slow()
  const links = new Set<string>()
  for (const name of Object.keys(GUIDES)) {
    await open(page, `/docs/guides/${name}`)
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
    const hrefs = await page
      .getByRole('main')
      .locator('a')
      .evaluateAll((all) => all.map((one) => one.getAttribute('href') ?? ''))
    for (const href of hrefs) {
      if (href.startsWith('#')) await expect(page.locator(`[id="${href.slice(1)}"]`), `${name} ${href}`).toHaveCount(1)
      else if (!href.startsWith('http')) links.add(href)
    }
  }
  for (const link of links) {
    expect(link).toMatch(/^\//)
    expect((await request.get(`${program.base}${link}`)).status(), link).toBe(200)
  }
})
