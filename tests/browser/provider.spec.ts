import { expect, type Page } from '@playwright/test'
import { Keypair } from '@stellar/stellar-sdk'
import { AUDIENCE, type OidcServer, openOidcServer } from '../auth/oidc-server.ts'
import { freePort } from '../support/port.ts'
import { test } from './fixtures.ts'
import { installFreighter } from './freighter.ts'
import { DESKTOP, findBarriers, findFaults, NARROWEST, openInteractive } from './operator.ts'
import { openPayroll, type Payroll } from './payroll.ts'
import { QUICK_LEDGER, type RunningProgram, runProgram } from './running-program.ts'

let provider: OidcServer
let program: RunningProgram
let payroll: Payroll
test.beforeAll(async () => {
  const port = await freePort()
  provider = await openOidcServer([`http://localhost:${port}/invite/sign-in`])
  await provider.start()
  const identity = { IDP_ISSUER: provider.issuer, IDP_AUDIENCE: AUDIENCE, IDP_CLIENT_ID: 'web' }
  program = await runProgram({ ...identity, ...QUICK_LEDGER, BATCH_ENABLED: 'false' }, port)
  payroll = await openPayroll(program)
})
test.afterAll(async () => {
  await program?.stop()
  await provider?.stop()
})

/** Creates a contractor; resolves to the invite link. */
async function invite(name: string, email: string): Promise<string> {
  const { id } = (await payroll.ask('POST', '/contractors', { name, email })).body as { id: string }
  return ((await payroll.ask('POST', `/contractors/${id}/invite`)).body as { inviteUrl: string }).inviteUrl
}

/** Signs in at the provider and consents. */
async function signInAtProvider(page: Page, user: string): Promise<void> {
  await page.getByRole('button', { name: 'Sign in with your email' }).click()
  await consent(page, user)
}

async function consent(page: Page, user: string): Promise<void> {
  await page.getByPlaceholder('Enter any login').fill(user)
  await page.getByPlaceholder('and password').fill('x')
  await page.getByRole('button', { name: 'Sign-in' }).click()
  await page.getByRole('button', { name: 'Continue' }).click()
}

test('accepts an invite with an email of the configured provider', async ({ page }) => {
  const link = await invite('Alice', 'alice@b.example')
  await openInteractive(page, link)
  expect(await findFaults(page, DESKTOP, NARROWEST)).toEqual([])
  await page.keyboard.press('Tab')
  await expect(page.getByRole('button', { name: 'Sign in with your email' })).toBeFocused()
  await expect(page.getByRole('button', { name: 'Accept with Freighter' })).toHaveCount(0)
  await signInAtProvider(page, 'alice')
  await expect(page).toHaveURL(link)
  await expect(page.getByRole('heading', { name: 'The invite is accepted' })).toBeVisible()
  await expect(page.getByRole('main')).toContainText('Register your account')
  expect(await findBarriers(page)).toEqual([])
  const { contractors } = (await payroll.ask('GET', '/contractors')).body as { contractors: { status: string }[] }
  expect(contractors[0]).toMatchObject({ name: 'Alice', status: 'onboarding' })
  expect((await page.goto(link))?.status()).toBe(200)
  await expect(page.getByRole('heading', { name: 'The invite is accepted' })).toBeVisible()
  await expect(page.getByRole('main')).toContainText('Register your account')
})

test('refuses another user, and lets the invited one sign in at the provider instead', async ({ page }) => {
  const link = await invite('Dora', 'dora@b.example')
  await openInteractive(page, link)
  // Bob's email is unverified and differs from the invite's.
  await signInAtProvider(page, 'bob')
  await expect(page).toHaveURL(`${link}?problem=invite-for-other`)
  await expect(page.getByRole('main').getByRole('alert')).toContainText('this invite is for another email or account')
  expect(await findBarriers(page)).toEqual([])
  // Bob is still signed in at the provider.
  await openInteractive(page, page.url())
  await signInAtProvider(page, 'dora')
  await expect(page).toHaveURL(link)
  await expect(page.getByRole('heading', { name: 'The invite is accepted' })).toBeVisible()
})

test('adds a wallet with a sign-in at the provider, for the user who accepted only', async ({ page, browser }) => {
  const key = Keypair.random()
  const link = await invite('Erin', 'erin@b.example')
  await openInteractive(page, link)
  await signInAtProvider(page, 'erin')
  await expect(page.getByRole('heading', { name: 'The invite is accepted' })).toBeVisible()
  const stranger = await browser.newPage()
  await installFreighter(stranger, Keypair.random())
  await openInteractive(stranger, link)
  await stranger.getByRole('button', { name: 'Add your Freighter wallet' }).click()
  await consent(stranger, 'dora')
  await expect(stranger.getByRole('main').getByRole('alert')).toContainText('accepted with another email')
  await stranger.close()
  await installFreighter(page, key)
  await openInteractive(page, link)
  await page.getByRole('button', { name: 'Add your Freighter wallet' }).click()
  // The browser is still signed in at the provider, which only asks for consent.
  await page.getByRole('button', { name: 'Continue' }).click()
  const list = async () => ((await payroll.ask('GET', '/contractors')).body as { contractors: object[] }).contractors
  await expect.poll(list).toContainEqual(expect.objectContaining({ name: 'Erin', address: key.publicKey() }))
  await page.goto(link)
  await expect(page.getByRole('main')).toContainText('Register your account')
  await expect(page.getByText('Add your wallet')).toHaveCount(0)
})

test('refuses a page of another site that begins a sign-in', async ({ request }) => {
  const answer = await request.post(`${program.base}/invite/sign-in`, {
    data: { token: 'x', wallet: { contractor: 'x', session: 'x' } },
    headers: { Origin: 'https://evil.example' },
  })
  expect(answer.status()).toBe(403)
})

test('takes no status from an address', async ({ page }) => {
  for (const path of ['/invite/accepted?status=ready', '/invite/late?status=ready']) {
    await page.goto(`${program.base}${path}`)
    await expect(page.getByRole('heading', { level: 1 })).toHaveText(/no longer valid|took too long/)
    await expect(page.getByRole('main')).not.toContainText(/accepted/)
  }
})

test('returns to the invite after a cancelled sign-in at the provider', async ({ page }) => {
  const link = await invite('Carol', 'carol@b.example')
  await openInteractive(page, link)
  await page.getByRole('button', { name: 'Sign in with your email' }).click()
  await page.getByRole('link', { name: /Cancel/ }).click()
  await expect(page).toHaveURL(`${link}?problem=identity-token-invalid`)
  await expect(page.getByRole('main').getByRole('alert')).toContainText('did not sign you in')
})

test('ignores a provider response that this browser did not request', async ({ page }) => {
  const link = await invite('Eve', 'alice@b.example2')
  await page.goto(`${program.base}/invite/sign-in?code=stolen&state=made-up`)
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('The sign-in took too long')
  expect(await findBarriers(page)).toEqual([])
  await openInteractive(page, link)
  await page.getByRole('button', { name: 'Sign in with your email' }).click()
  await expect(page.getByPlaceholder('Enter any login')).toBeVisible()
  await page.goto(`${program.base}/invite/sign-in?code=stolen&state=made-up`)
  await expect(page).toHaveURL(`${link}?problem=identity-token-invalid`)
  // The second time, the browser has no pending sign-in.
  await page.goto(`${program.base}/invite/sign-in?code=stolen&state=made-up`)
  await expect(page).toHaveURL(`${program.base}/invite/late`)
})
