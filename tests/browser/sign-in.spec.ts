import { expect } from '@playwright/test'
import { test } from './fixtures.ts'
import { enter, findBarriers, PAGES, signIn } from './operator.ts'
import type { RunningProgram } from './running-program.ts'

let program: RunningProgram
test.beforeAll(({ shared }) => {
  program = shared
})

const message = 'Wrong password.'
const NO_BATCH = '/batches/00000000-0000-4000-8000-000000000000'

test('links from the home page to the dashboard, which redirects to the sign-in', async ({ page }) => {
  await page.goto(program.base)
  await page.getByRole('link', { name: 'Operator dashboard' }).click()
  await expect(page).toHaveURL(/\/sign-in\?to=%2Foverview$/)
  expect(await findBarriers(page)).toEqual([])
})

test('opens the requested page after the right password', async ({ page, context }) => {
  await page.goto(`${program.base}/transfers?view=failed`)
  await signIn(page, program.base)
  await expect(page).toHaveURL(`${program.base}/transfers?view=failed`)
  const cookies = await context.cookies()
  expect(cookies).toHaveLength(2)
  for (const cookie of cookies) {
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Lax', secure: false, path: '/' })
    expect(cookie.expires).toBeGreaterThan(Date.now() / 1000)
  }
})

test('opens the requested part of a list after sign-in', async ({ page, context }) => {
  const places = ['/batches?status=ready', `${NO_BATCH}?cursor=MTc5NTE3NzgwMDAwMC0yMDA`, '/transfers?search=a*b']
  for (const place of places) {
    await context.clearCookies()
    await page.goto(`${program.base}${place}`)
    await signIn(page, program.base)
    await expect(page).toHaveURL(`${program.base}${place}`)
  }
  // A wrong password in between does not matter.
  await context.clearCookies()
  await page.goto(`${program.base}${places[1]}`)
  await signIn(page, program.base, 'Wrong password')
  await expect(page.getByRole('alert').filter({ hasText: message })).toBeVisible()
  await signIn(page, program.base)
  await expect(page).toHaveURL(`${program.base}${places[1]}`)
})

test('rejects a wrong password, and announces that to screen readers', async ({ page }) => {
  await page.goto(`${program.base}/sign-in`)
  await expect(page.getByLabel('Password')).toHaveAccessibleDescription(/printed when the service starts/)
  await expect(page.getByLabel('Password')).not.toHaveAttribute('aria-invalid')
  await signIn(page, program.base, 'Wrong password')
  await expect(page.getByRole('alert').filter({ hasText: message })).toBeVisible()
  await expect(page.getByLabel('Password')).toHaveAccessibleDescription(/^Wrong password\. It is printed/)
  await page.goto(`${program.base}/overview`)
  await expect(page).toHaveURL(/\/sign-in/)
})

test('keeps the focus and the hint after a wrong password', async ({ page }) => {
  await signIn(page, program.base, 'a wrong password')
  await expect(page).toHaveURL(/problem=/)
  const field = page.getByLabel('Password')
  await expect(field).toBeFocused()
  await expect(page.getByLabel('Your name')).toHaveValue('Ada Operator')
  await expect(field).toHaveAccessibleDescription(/It is printed when the service starts/)
})

test('redirects every page without a valid cookie to the sign-in', async ({ request }) => {
  const name = `operator-${new URL(program.base).port}`
  const forged = 'eyJhbGciOiJub25lIiwidHlwIjoib3BlcmF0b3Itc2Vzc2lvbitqd3QifQ.eyJqdGkiOiJ4IiwiaWF0IjoxLCJleHAiOjl9.'
  const paths = [...PAGES.map(([path]) => path), NO_BATCH]
  for (const path of paths) {
    for (const cookie of ['', `${name}=${forged}`, `${name}=x`]) {
      const answer = await request.get(`${program.base}${path}`, { maxRedirects: 0, headers: { Cookie: cookie } })
      expect(answer.status(), path).toBe(307)
      expect(answer.headers().location, path).toBe(`/sign-in?to=${encodeURIComponent(path)}`)
      expect(await answer.text(), path).not.toMatch(/Health|Sponsor’s balance/)
    }
  }
})

test('grants no access with the cookie that remembers a browser', async ({ page, context }) => {
  await enter(page, program.base)
  const port = new URL(program.base).port
  const browser = (await context.cookies()).find(({ name }) => name === `operator-browser-${port}`)
  await context.clearCookies()
  await context.addCookies([{ name: `operator-${port}`, value: browser?.value ?? '', url: program.base }])
  await page.goto(`${program.base}/overview`)
  await expect(page).toHaveURL(/\/sign-in/)
})

test('signs out, and rejects the form from strangers and other origins', async ({ page, request, context }) => {
  await enter(page, program.base)
  const post = (headers: Record<string, string>) =>
    request.post(`${program.base}/sign-out`, { maxRedirects: 0, headers })
  const stranger = await post({ Origin: program.base, Cookie: '' })
  expect([stranger.status(), stranger.headers().location]).toEqual([303, '/sign-in?to=%2Foverview'])
  const cookies = (await context.cookies()).map(({ name, value }) => `${name}=${value}`).join('; ')
  const foreign = await post({ Origin: 'https://elsewhere.example', Cookie: cookies })
  expect(foreign.status()).toBe(403)
  expect(foreign.headers()).not.toHaveProperty('set-cookie')
  await page.getByRole('button', { name: 'Sign out' }).filter({ visible: true }).click()
  await expect(page.getByText('You are signed out.')).toBeVisible()
  await page.goto(`${program.base}/batches`)
  await expect(page).toHaveURL(/\/sign-in/)
})

test('works under every name of this machine, and links to a working address on any other', async ({ page }) => {
  const { port } = new URL(program.base)
  await enter(page, `http://127.0.0.1:${port}`)
  await expect(page).toHaveURL(`http://127.0.0.1:${port}/overview`)
  await page.getByRole('button', { name: 'Sign out' }).filter({ visible: true }).click()
  await expect(page.getByText('You are signed out.')).toBeVisible()
  // Chromium resolves every name under .localhost to this machine, including names unknown to the service.
  await page.goto(`http://payroll.localhost:${port}/sign-in`)
  await signIn(page, program.base)
  await expect(page.getByRole('heading', { name: 'Wrong address' })).toBeVisible()
  expect(await findBarriers(page)).toEqual([])
  await page.getByRole('link', { name: program.base }).click()
  await enter(page, program.base)
})

test('redirects only to pages of this service after sign-in', async ({ page }) => {
  for (const to of ['https://elsewhere.example/', '//elsewhere.example', '/overview/../../x', '/api/health']) {
    await page.goto(`${program.base}/sign-in?to=${encodeURIComponent(to)}`)
    await signIn(page, program.base)
    await expect(page).toHaveURL(`${program.base}/overview`)
  }
})

test('delays a stranger after five wrong passwords, but not a browser that has signed in before', async ({
  page,
  browser,
}) => {
  await enter(page, program.base)
  const stranger = await browser.newPage()
  for (let tries = 1; tries <= 5; tries += 1) {
    await signIn(stranger, program.base, `guess ${tries}`)
    await expect(stranger).toHaveURL(/problem=(wrong|wait)/)
    if (stranger.url().includes('wait')) break
    await stranger.goto(`${program.base}/sign-in`)
  }
  await expect(async () => {
    await stranger.goto(`${program.base}/sign-in`)
    await signIn(stranger, program.base, 'another guess')
    await expect(stranger).toHaveURL(/problem=/)
    expect(await stranger.getByRole('alert').allTextContents()).toContainEqual(
      expect.stringMatching(/Too many wrong passwords. Try again in \d+ s./),
    )
  }).toPass()
  await page.getByRole('button', { name: 'Sign out' }).filter({ visible: true }).click()
  await enter(page, program.base)
  // The delay ends.
  await expect(async () => {
    await stranger.goto(`${program.base}/sign-in`)
    await signIn(stranger, program.base)
    await expect(stranger).toHaveURL(/problem=|overview/)
    expect(stranger.url()).toBe(`${program.base}/overview`)
  }).toPass()
  await stranger.close()
})

test.describe('without JavaScript', () => {
  test.use({ javaScriptEnabled: false })

  test('signs in and out', async ({ page }) => {
    await signIn(page, program.base, 'Wrong password')
    await expect(page.getByText(message)).toBeVisible()
    await enter(page, program.base)
    await page.getByRole('button', { name: 'Sign out' }).filter({ visible: true }).click()
    await expect(page.getByText('You are signed out.')).toBeVisible()
  })
})
