import { expect, type Page, test } from '@playwright/test'
import { OPERATIONS } from '#lib/api/operations.ts'
import { DESKTOP, findBarriers, NARROWEST, overflowOf, PHONE } from './operator.ts'
import { type RunningProgram, runProgram } from './running-program.ts'
import { ALLOWANCE, emptyPageBytes, scriptBytes } from './script-bytes.ts'

let program: RunningProgram
test.beforeAll(async () => {
  program = await runProgram()
})
test.afterAll(() => program.stop())

const open = (page: Page) => page.goto(`${program.base}/docs`)
const routeOf = (page: Page, id: string) => page.locator(`article#${id}`)

/** Unfolds the form of a route. */
async function unfold(page: Page, id: string) {
  const route = routeOf(page, id)
  await route.getByRole('button', { name: 'Try it' }).click()
  return {
    route,
    send: () => route.getByRole('button', { name: /^Send/ }).click(),
    answer: route.getByRole('textbox', { name: 'Body of the answer' }),
  }
}

test('every route is there to be read, without JavaScript', async ({ browser }) => {
  const context = await browser.newContext({ javaScriptEnabled: false })
  const page = await context.newPage()
  await open(page)
  await expect(page.getByRole('article')).toHaveCount(OPERATIONS.length)
  for (const { id, summary } of OPERATIONS) {
    await expect(routeOf(page, id).getByRole('heading', { name: summary })).toBeVisible()
  }
  await expect(page.getByRole('button', { name: 'Try it' })).toHaveCount(0)
  const refused = routeOf(page, 'sponsorTransfer').locator('details', { hasText: 'The sponsor refuses to pay' })
  await refused.locator('summary').click()
  await expect(refused.getByText('sponsor refused: sponsor float exhausted')).toBeVisible()
  await context.close()
})

test('its tab has an icon', async ({ page }) => {
  await open(page)
  const icon = await page.locator('link[rel="icon"]').getAttribute('href')
  const answer = await page.request.get(new URL(icon ?? '', program.base).href)
  expect(answer.headers()['content-type']).toBe('image/svg+xml')
})

test('a link leads to its route', async ({ page }) => {
  await page.setViewportSize(DESKTOP)
  await open(page)
  await page.getByRole('navigation', { name: 'Routes' }).getByRole('link', { name: 'GET /payouts' }).click()
  await expect(page).toHaveURL(/#listPayouts$/)
  await expect(routeOf(page, 'listPayouts')).toBeInViewport()
})

test('a form sends, and shows status, headers and body', async ({ page }) => {
  await open(page)
  const health = await unfold(page, 'getHealth')
  await health.send()
  await expect(health.answer).toHaveValue(/"ok": true/)
  await expect(health.route.getByText(/200 in \d+ ms/)).toBeVisible()
  const me = await unfold(page, 'getMe')
  await me.send()
  await expect(me.answer).toHaveValue(/missing bearer token/)
  await expect(me.route.getByText('WWW-Authenticate: Bearer')).toBeVisible()
})

test('what a sign-in gives is in every form: a contractor is made and found', async ({ page }) => {
  const issuer = new URL('/idp/token', program.deploymentUrl)
  const body = JSON.stringify({ sub: 'ada', email: 'ada@example.com' })
  const headers = { 'Content-Type': 'application/json' }
  const issued = (await (await fetch(issuer, { method: 'POST', headers, body })).json()) as Record<string, string>
  const token = issued.access_token
  await open(page)
  const signIn = await unfold(page, 'signInWithProvider')
  await signIn.route.getByLabel('Body', { exact: true }).fill(JSON.stringify({ token }))
  await signIn.send()
  await expect(signIn.answer).toHaveValue(/"kind": "idp"/)

  const create = await unfold(page, 'createContractor')
  await expect(create.route.getByLabel(/^Bearer token/)).not.toHaveValue('')
  const name = '<img src=x onerror="document.title=1">'
  await create.route.getByLabel('Body', { exact: true }).fill(JSON.stringify({ name }))
  await create.send()
  await expect(create.answer).toHaveValue(/"status": "invited"/)
  const { id } = JSON.parse(await create.answer.inputValue())

  const find = await unfold(page, 'getContractor')
  await find.route.getByLabel(/^id/).fill(id)
  await find.send()
  await expect(find.answer).toHaveValue(new RegExp(`"id": "${id}"`))
  const list = await unfold(page, 'listContractors')
  await list.route.getByLabel(/^limit/).fill('0')
  await list.send()
  await expect(list.answer).toHaveValue(/limit must be 1 to 500/)
  await expect(page).toHaveTitle(/^API reference/)
})

test('a service that is not there is said to be so', async ({ page }) => {
  await open(page)
  const health = await unfold(page, 'getHealth')
  await health.route.getByLabel('Base address').fill('http://127.0.0.1:9')
  await health.send()
  await expect(health.route.getByText('No answer')).toBeVisible()
})

test('the keyboard is enough', async ({ page }) => {
  await open(page)
  await page.keyboard.press('Tab')
  await expect(page.getByRole('link', { name: 'Skip to the content' })).toBeFocused()
  const button = routeOf(page, 'getHealth').getByRole('button', { name: 'Try it' })
  await button.focus()
  await page.keyboard.press('Enter')
  await expect(button).toHaveAttribute('aria-expanded', 'true')
  await page.keyboard.press('Tab')
  await expect(routeOf(page, 'getHealth').getByLabel('Base address')).toBeFocused()
  await page.keyboard.press('Enter')
  await expect(routeOf(page, 'getHealth').getByText(/200 in \d+ ms/)).toBeVisible()
})

for (const colorScheme of ['light', 'dark'] as const) {
  test(`axe finds nothing, ${colorScheme}, desktop and phone`, async ({ page }) => {
    await page.emulateMedia({ colorScheme })
    for (const size of [DESKTOP, PHONE]) {
      await page.setViewportSize(size)
      await open(page)
      const create = await unfold(page, 'createContractor')
      await create.send()
      await expect(create.answer).toBeVisible()
      await create.route.locator('summary').nth(1).click()
      expect(await findBarriers(page), `at ${size.width}`).toEqual([])
    }
  })
}

test('it fits a narrow phone', async ({ page }) => {
  await page.setViewportSize(NARROWEST)
  await open(page)
  await unfold(page, 'createContractor')
  expect(await overflowOf(page)).toBeLessThanOrEqual(0)
})

test('its scripts are at most 25 kB over those of an empty page', async ({ browser }) => {
  const empty = await emptyPageBytes(browser, program.base)
  const more = (await scriptBytes(browser, `${program.base}/docs`)) - empty
  expect(more).toBeGreaterThan(0)
  expect(more).toBeLessThanOrEqual(ALLOWANCE)
})

test('no other host is asked for anything', async ({ page }) => {
  const hosts = new Set<string>()
  page.on('request', (request) => hosts.add(new URL(request.url()).host))
  await page.goto(`${program.base}/docs`, { waitUntil: 'networkidle' })
  expect([...hosts]).toEqual([new URL(program.base).host])
})
