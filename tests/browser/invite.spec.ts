import { expect } from '@playwright/test'
import { Keypair } from '@stellar/stellar-sdk'
import { test } from './fixtures.ts'
import { installFreighter } from './freighter.ts'
import { DESKTOP, findBarriers, findFaults, NARROWEST, openInteractive, PHONE } from './operator.ts'
import { openPayroll, type Payroll } from './payroll.ts'
import type { RunningProgram } from './running-program.ts'

const COMPANY = 'Northwind <b>Robotics</b>'

let program: RunningProgram
let payroll: Payroll
test.beforeAll(async ({ shared }) => {
  program = shared
  payroll = await openPayroll(program)
  await payroll.ask('PATCH', '/me', { orgName: COMPANY })
})

/** Creates a contractor; resolves to the invite link. */
async function invite(contractor: Record<string, string>): Promise<string> {
  const { id } = (await payroll.ask('POST', '/contractors', contractor)).body as { id: string }
  const { inviteUrl } = (await payroll.ask('POST', `/contractors/${id}/invite`)).body as { inviteUrl: string }
  return inviteUrl
}

const statusOf = async (name: string) => {
  const { contractors } = (await payroll.ask('GET', '/contractors')).body as {
    contractors: { name: string; status: string; address?: string }[]
  }
  return contractors.find((contractor) => contractor.name === name)
}

/** The text of an invite that disappears once it is accepted. */
const ASKED = /You are invited to be paid|can be accepted once|If you did not expect this/

test('accepts an invite with an email in any script, and shows the next steps', async ({ page }) => {
  await openInteractive(page, await invite({ name: 'Ada Lovelace', email: 'jörg@bücher.example' }))
  await expect(page.getByRole('heading', { level: 1, name: `${COMPANY} invites you` })).toBeVisible()
  await expect(page.getByRole('main')).toContainText(ASKED)
  await expect(page.getByText('This invite is for j…@bücher.example.')).toBeVisible()
  await expect(page.getByText(/accepted once, until \d+ \w{3} \d{4}, \d\d:\d\d UTC/)).toBeVisible()
  await page.getByRole('textbox', { name: 'Accept with your email' }).fill('bob@example.com')
  await page.keyboard.press('Enter')
  await expect(page.getByRole('main').getByRole('alert')).toContainText('this invite is for another email or account')
  await page.getByRole('textbox', { name: 'Accept with your email' }).fill('jörg@bücher.example')
  await page.getByRole('button', { name: 'Accept by email' }).click()
  await expect(page.getByRole('heading', { name: 'The invite is accepted' })).toBeFocused()
  await expect(page.getByRole('main')).toContainText('Register your account')
  await expect(page.getByRole('main')).not.toContainText(ASKED)
  await expect(page.getByRole('main')).toContainText('friendbot creates accounts on test networks')
  await expect(page.getByRole('main')).toContainText(`wallet -- register --secret S… --service ${program.base}`)
  expect(await findBarriers(page)).toEqual([])
  expect((await statusOf('Ada Lovelace'))?.status).toBe('onboarding')
  expect((await page.reload())?.status()).toBe(200)
  await expect(page.getByRole('heading', { name: 'The invite is accepted' })).toBeVisible()
  await expect(page.getByRole('main')).toContainText('Register your account')
  expect(await findFaults(page, DESKTOP, PHONE, NARROWEST)).toEqual([])
})

test('offers only what can accept an invite, and says what comes next', async ({ page }) => {
  const wallet = page.getByRole('button', { name: 'Accept with Freighter' })
  const email = page.getByRole('textbox', { name: 'Accept with your email' })
  for (const [contractor, byEmail, byWallet, next] of [
    [{ name: 'Email', email: 'only@example.com' }, 1, 0, 'Afterwards you add the wallet'],
    [
      { name: 'Both', email: 'both@example.com', address: Keypair.random().publicKey() },
      1,
      1,
      'the account that you gave your employer',
    ],
    [{ name: 'Wallet', address: Keypair.random().publicKey() }, 0, 1, 'the account that you gave your employer'],
    [{ name: 'Neither' }, 1, 1, 'paid to its account'],
  ] as const) {
    await openInteractive(page, await invite(contractor))
    await expect(email).toHaveCount(byEmail)
    await expect(wallet).toHaveCount(byWallet)
    await expect(page.getByRole('main')).toContainText(next)
    expect(await findFaults(page, DESKTOP, NARROWEST)).toEqual([])
  }
})

test('adds a wallet to the contractor who accepted by email, at any later time', async ({ page }) => {
  const key = Keypair.random()
  await installFreighter(page, key)
  await openInteractive(page, await invite({ name: 'Annie Easley', email: 'annie@example.com' }))
  await page.getByRole('textbox', { name: 'Accept with your email' }).fill('annie@example.com')
  await page.getByRole('button', { name: 'Accept by email' }).click()
  await expect(page.getByRole('heading', { name: 'The invite is accepted' })).toBeFocused()
  await openInteractive(page, page.url())
  const email = page.getByRole('textbox', { name: 'The email that you accepted with' })
  const add = page.getByRole('button', { name: 'Add your Freighter wallet' })
  await email.fill('eve@example.com')
  await add.click()
  await expect(page.getByRole('main').getByRole('alert')).toContainText('accepted with another email')
  expect(await findFaults(page, DESKTOP, PHONE, NARROWEST)).toEqual([])
  await email.fill('annie@example.com')
  await add.click()
  await expect(add).toHaveCount(0)
  await expect(page.getByRole('main')).toContainText('Register your account')
  expect(await statusOf('Annie Easley')).toMatchObject({ status: 'onboarding', address: key.publicKey() })
})

test.describe('on a phone', () => {
  test.use({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true })

  test('says before a tap that the wallet needs a computer', async ({ page }) => {
    const hint = page.getByText('Freighter is an extension of desktop browsers')
    await openInteractive(page, await invite({ name: 'Mary Jackson' }))
    await expect(hint).toContainText('or accept with your email here and add the wallet later')
    await expect(hint).toBeVisible()
    await page.getByRole('textbox', { name: 'Accept with your email' }).fill('mary@example.com')
    await page.getByRole('button', { name: 'Accept by email' }).click()
    await expect(page.getByRole('button', { name: 'Add your Freighter wallet' })).toBeVisible()
    await expect(hint).toBeVisible()
  })
})

test('accepts an invite with a wallet, whose account becomes the address', async ({ page }) => {
  const [payee] = await payroll.hire('somebody else')
  const key = Keypair.random()
  await installFreighter(page, key)
  await openInteractive(page, await invite({ name: 'Grace Hopper' }))
  await page.getByRole('button', { name: 'Accept with Freighter' }).click()
  await expect(page.getByRole('heading', { name: 'The invite is accepted' })).toBeVisible()
  await expect(page.getByRole('main')).not.toContainText('enter the account’s address')
  expect(await findFaults(page, DESKTOP, PHONE)).toEqual([])
  expect(await statusOf('Grace Hopper')).toMatchObject({ status: 'onboarding', address: key.publicKey() })
  expect(payee?.address).not.toBe(key.publicKey())
})

test('reports that the wallet refused, and keeps the invite open', async ({ page }) => {
  await installFreighter(page, Keypair.random(), { refuses: true })
  const link = await invite({ name: 'Alan Turing' })
  await openInteractive(page, link)
  await page.getByRole('button', { name: 'Accept with Freighter' }).click()
  await expect(page.getByRole('main').getByRole('alert')).toContainText('The user rejected this request')
  expect((await page.reload())?.status()).toBe(200)
})

test('links to the wallet extension if it is missing', async ({ page }) => {
  await openInteractive(page, await invite({ name: 'Radia Perlman' }))
  await page.getByRole('button', { name: 'Accept with Freighter' }).click()
  await expect(page.getByText('This invite is for Radia Perlman.')).toBeVisible()
  await expect(page.getByRole('link', { name: 'Get it at freighter.app' })).toBeVisible()
  await expect(page.getByRole('main').getByRole('alert')).toContainText(
    'Browsers on phones have no wallet extensions: open this link on a computer, or accept with your email.',
  )
  expect(await findBarriers(page)).toEqual([])
})

test('responds 404 to an invalid link', async ({ page }) => {
  for (const token of ['nothing', 'A'.repeat(70)]) {
    expect((await page.goto(`${program.base}/invite/${token}`))?.status()).toBe(404)
    await expect(page.getByRole('heading', { level: 1 })).toHaveText('This invite is no longer valid')
    expect(await findBarriers(page)).toEqual([])
  }
})

test('has no accessibility violations or clipped content, light and dark, desktop and phone', async ({ page }) => {
  await openInteractive(page, await invite({ name: 'Barbara Liskov' }))
  expect(await findFaults(page, DESKTOP, PHONE, NARROWEST)).toEqual([])
})

test('makes everything reachable by keyboard', async ({ page }) => {
  await openInteractive(page, await invite({ name: 'Edsger Dijkstra' }))
  await page.keyboard.press('Tab')
  await expect(page.getByRole('textbox', { name: 'Accept with your email' })).toBeFocused()
  await page.keyboard.press('Tab')
  await expect(page.getByRole('button', { name: 'Accept by email' })).toBeFocused()
  await page.keyboard.press('Tab')
  await expect(page.getByRole('button', { name: 'Accept with Freighter' })).toBeFocused()
})
