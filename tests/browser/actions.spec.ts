import { expect } from '@playwright/test'
import { test } from './fixtures.ts'
import { DESKTOP, findBarriers, findFaults, PHONE, visit } from './operator.ts'
import type { RunningProgram } from './running-program.ts'

let program: RunningProgram
test.beforeAll(({ shared }) => {
  program = shared
})

test('pauses and resumes a channel, and shows in the audit log who did it and why', async ({ page }) => {
  await visit(page, program, '/jobs')
  const channel = page.getByRole('region', { name: 'Channels' }).getByRole('listitem').first()
  await channel.getByText('Pause …').click()
  await channel.getByRole('textbox', { name: /^Why/ }).fill('a new <key>')
  expect(await findBarriers(page)).toEqual([])
  await channel.getByRole('button', { name: 'Pause' }).click()
  await expect(page).toHaveURL(`${program.base}/jobs`)
  await expect(channel).toContainText('Paused')
  await channel.getByText('Resume …').click()
  await channel.getByRole('textbox', { name: /^Why/ }).fill('it works again')
  await channel.getByRole('button', { name: 'Resume' }).click()
  await expect(channel.getByText('Pause …')).toBeVisible()
  await page.goto(`${program.base}/audit?action=channel.paused`)
  await expect(page.getByRole('row').nth(1)).toContainText(/^Channel G.* was paused by Ada Operator: “a new <key>”/)
})

test('says on an accessible page why an action changed nothing, and leads back', async ({ page }) => {
  await visit(page, program, '/jobs')
  const channel = page.getByRole('region', { name: 'Channels' }).getByRole('listitem').first()
  await channel.getByText('Pause …').click()
  await channel.getByRole('textbox', { name: /^Why/ }).fill('a channel that is gone')
  await channel.locator('input[name=subject]').evaluate((input) => input.setAttribute('value', 'GONE'))
  await channel.getByRole('button', { name: 'Pause' }).click()
  await expect(page.getByRole('heading', { level: 1, name: 'Nothing was changed' })).toBeVisible()
  expect(await findFaults(page, DESKTOP, PHONE)).toEqual([])
  await page.getByRole('link', { name: 'Back' }).click()
  await expect(page).toHaveURL(`${program.base}/jobs`)
})

test('refuses an action of a stranger, of another site, of a stale page, or without a reason', async ({
  page,
  request,
}) => {
  const form = { action: 'pause-channel', subject: 'G', note: 'why', back: '//evil.example' }
  const own = { Origin: program.base }
  const stranger = await request.post(`${program.base}/act`, { form, headers: own, maxRedirects: 0 })
  expect([stranger.status(), stranger.headers().location]).toEqual([303, '/sign-in?to=%2Foverview'])
  await visit(page, program)
  const post = (fields: Partial<typeof form>, headers = own) =>
    page.request.post(`${program.base}/act`, { form: { ...form, ...fields }, headers, maxRedirects: 0 })
  expect((await post({}, { Origin: 'https://evil.example' })).status()).toBe(403)
  const stale = await post({})
  expect([stale.status(), await stale.text()]).toEqual([
    409,
    expect.stringMatching(/no such channel.*href="\/overview"/),
  ])
  expect((await post({ note: '' })).status()).toBe(409)
  const closed = await post({ action: 'look-up-transfer', subject: crypto.randomUUID() })
  expect([closed.status(), await closed.text()]).toEqual([409, expect.stringContaining('not open any more')])
  for (const action of ['pause-channel', 'resend-invite', 'retire-channel', 'resume-payments']) {
    const unexplained = await post({ action, note: '' })
    expect([unexplained.status(), await unexplained.text()]).toEqual([409, expect.stringContaining('Say why')])
  }
  const early = await post({ action: 'resume-payments', subject: 'payments' })
  expect([early.status(), await early.text()]).toEqual([409, expect.stringContaining('Payments are not stopped')])
  const unknown = await post({ action: 'resend-invite', subject: crypto.randomUUID() })
  expect([unknown.status(), await unknown.text()]).toEqual([409, expect.stringContaining('contractor not found')])
  expect((await post({ action: 'pay' })).status()).toBe(400)
})
