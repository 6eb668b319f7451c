import { expect, type Page, test } from '@playwright/test'
import { OPERATIONS } from '#lib/api/interface.ts'
import { DESKTOP, findFaults, NARROWEST, PHONE } from './operator.ts'
import { type RunningProgram, runProgram } from './running-program.ts'

let program: RunningProgram
test.beforeAll(async () => {
  program = await runProgram({ BATCH_ENABLED: 'false' })
})
test.afterAll(() => program.stop())

/** Opens the reference, and collects the browser's errors and the requested origins. */
async function open(page: Page) {
  const complaints: string[] = []
  const origins = new Set<string>()
  page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()))
  page.on('pageerror', (error) => complaints.push(error.message))
  page.on('request', (request) => origins.add(new URL(request.url()).origin))
  await page.goto(`${program.base}/docs`)
  await expect(page.locator('.opblock')).toHaveCount(OPERATIONS.length)
  return { complaints, origins }
}

const routeOf = (page: Page, id: string) => page.locator(`.opblock[id$="-${id}"]`)

/** Expands an operation and sends its example. */
async function send(page: Page, id: string) {
  const route = routeOf(page, id)
  await route.locator('.opblock-summary-control').click()
  await route.getByRole('button', { name: 'Execute' }).click()
  return route.locator('.live-responses-table')
}

test('lists every operation, requests only its own origin, and violates no policy', async ({ page }) => {
  const { complaints, origins } = await open(page)
  for (const { summary } of OPERATIONS) await expect(page.getByText(summary, { exact: true }).first()).toBeAttached()
  await expect(await send(page, 'getHealth')).toContainText('"ok": true')
  expect(complaints).toEqual([])
  expect([...origins]).toEqual([program.base])
})

for (const [kind, name] of [
  ['ledger', 'Sign in with a new wallet'],
  ['idp', 'Sign in with an email'],
] as const) {
  test(`signs in a test user of kind ${kind} on a phone, and sends its session with later requests`, async ({
    page,
  }) => {
    await page.setViewportSize(PHONE)
    const { complaints } = await open(page)
    await page.getByRole('button', { name }).click()
    await expect(page.locator('.test-session').getByRole('status')).toContainText('Signed in as')
    expect(await findFaults(page, PHONE, NARROWEST)).toEqual([])
    await expect(await send(page, 'getMe')).toContainText(`"kind": "${kind}"`)
    expect(complaints).toEqual([])
  })
}

test('has no accessibility violations and fits a phone, light and dark', async ({ page }) => {
  await open(page)
  await expect(await send(page, 'getHealth')).toContainText('"ok": true')
  await routeOf(page, 'createContractor').locator('.opblock-summary-control').click()
  await expect(routeOf(page, 'createContractor').getByRole('button', { name: 'Execute' })).toBeVisible()
  expect(await findFaults(page, DESKTOP, PHONE)).toEqual([])
  await page.setViewportSize(PHONE)
  for (const { summary } of OPERATIONS) await expect(page.getByText(summary, { exact: true }).first()).toBeVisible()
  await expect(page.getByRole('link', { name: 'Confidential payroll' })).toHaveAttribute('href', '/')
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    const isDark = () => page.evaluate(() => getComputedStyle(document.documentElement).colorScheme.includes('dark'))
    await expect.poll(isDark).toBe(colorScheme === 'dark')
  }
})

test('serves assets that browsers cache forever', async ({ request }) => {
  const page = await request.get(`${program.base}/docs`)
  const etag = page.headers().etag ?? ''
  const again = await request.get(`${program.base}/docs`, { headers: { 'If-None-Match': etag } })
  expect([page.status(), again.status()]).toEqual([200, 304])
  const text = await page.text()
  const files = [...text.matchAll(/(?:src|href)="(\/docs\/[^"]+)"/g)].map(([, path]) => path)
  expect(files).toHaveLength(5)
  for (const file of files) {
    const answer = await request.get(`${program.base}${file}`)
    expect([answer.status(), answer.headers()['cache-control']]).toEqual([200, 'public, max-age=31536000, immutable'])
  }
  const old = (files[0] ?? '').replace(/[0-9a-f]{16}/, '0'.repeat(16))
  expect((await request.get(`${program.base}${old}`)).url()).toBe(`${program.base}${files[0]}`)
  expect((await request.get(`${program.base}${(files[0] ?? '').replace(/[^/]+$/, 'other.js')}`)).status()).toBe(404)
})
