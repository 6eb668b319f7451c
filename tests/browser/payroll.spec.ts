import { expect, type Locator, type Page } from '@playwright/test'
import { test } from './fixtures.ts'
import { PAGES, visit } from './operator.ts'
import { openPayroll, type Payroll } from './payroll.ts'
import { type RunningProgram, runProgram } from './running-program.ts'

const SCRIPT = '<script>document.title = "taken over"</script>'
const IMAGE = '<img src=x onerror="document.title = \'taken over\'">'

const ORGANISATION = 'Northwind <b>Robotics</b>'
const RATE = { amount: '7654.321', currency: 'USDC' }

let program: RunningProgram
let payroll: Payroll
/** the id of a batch with one failed payout */
let failed: string
test.beforeAll(async () => {
  program = await runProgram()
  payroll = await openPayroll(program)
  await payroll.ask('PATCH', '/me', { orgName: ORGANISATION })
  const [ada, grace, other] = await payroll.hire('Ada Lovelace', 'Grace Hopper', SCRIPT)
  if (!ada || !grace || !other) throw new Error('no contractor was created')
  await payroll.prepare(SCRIPT, [ada, grace, other])
  for (const payee of [ada, grace, other]) await payroll.pay(payee)
  failed = await payroll.prepare('Bonus round', [ada, grace])
  expect(await payroll.fail(grace)).toBe(500)
  await payroll.pay(ada)
  expect(await payroll.overreach(ada)).toBe(422)
  expect((await payroll.ask('POST', '/contractors', { name: IMAGE, rate: RATE })).status).toBe(200)
})
test.afterAll(() => program.stop())

const rowOf = (page: Page, name: string): Locator => page.getByRole('row').filter({ hasText: name })
test('shows a failed payout with its reason, here and among the attention items', async ({ page }) => {
  await visit(page, program, `/batches/${failed}`)
  await expect(page.getByRole('region', { name: 'Summary' })).toContainText('1 failed')
  const row = rowOf(page, 'Grace Hopper')
  await expect(row).toContainText('Failed')
  await expect(row).toContainText('another transaction of the account')
  // The reason appears once.
  await expect(row).not.toContainText('the transfer expired before it reached the ledger')
  await page.goto(`${program.base}/overview`)
  const attention = page
    .getByRole('region', { name: 'Needs attention' })
    .getByRole('listitem')
    .filter({ hasText: 'Bonus round' })
  // The organisation's only user is a wallet.
  await expect(attention).toContainText(`${ORGANISATION} (${payroll.employer.signer.publicKey()}`)
  await expect(attention).toContainText('· Bonus round · Grace Hopper')
  await expect(attention).toContainText('another transaction of the account')
  await expect(attention).toContainText('Ask the employer to check with the contractor whether the payment arrived')
  // A wallet can't be emailed, so the operator has the words.
  await expect(attention).toContainText(/Tell ?“Please open your payroll application and check with the contractor/)
  await attention.getByRole('link', { name: 'Grace Hopper' }).click()
  await expect(page.getByRole('heading', { level: 1, name: 'Grace Hopper' })).toBeVisible()
  await page.getByRole('link', { name: /^All transfers/ }).click()
  await expect(page.getByRole('link', { name: 'Remove the filter Contractor: Grace Hopper' })).toBeVisible()
  // An expired transfer is shown as failed.
  await page.getByRole('link', { name: 'Failed 1' }).click()
  await expect(page).toHaveURL(/view=failed/)
  await expect(page.getByRole('row')).toHaveCount(2)
  await expect(rowOf(page, 'Grace Hopper')).toContainText('Expired')
})

test('shows a refusal with its reason', async ({ page }) => {
  await visit(page, program, '/transfers?view=refused')
  await expect(rowOf(page, payroll.employer.signer.publicKey()).first()).toContainText(
    'maxTime is more than 330 seconds away',
  )
})

test('shows figures on the overview, and charts also as tables', async ({ page }) => {
  await visit(page, program)
  const main = page.getByRole('main')
  await expect(main).toContainText('4 succeeded, 1 failed, 0 open in the last 24 hours')
  await expect(main).toContainText('5 transfers today')
  await expect(main).toContainText(/Half within \d\.\d s, 95 of 100 within \d\.\d s/)
  await expect(main).toContainText(/0\.\d+ XLM charged in the last 24 hours/)
  await expect(main).toContainText(/Vault balance[\d,]+\.00USDC/)
  await page.getByText('As a table').first().click()
  // The hour may turn during the test, so the transfers may be in two rows.
  const succeeded = await page
    .getByRole('table')
    .first()
    .locator('tbody tr')
    .evaluateAll((rows) => rows.reduce((sum, row) => sum + Number(row.children[1]?.textContent), 0))
  expect(succeeded).toBe(4)
  await page.getByRole('link', { name: '30 days' }).click()
  await expect(main).toContainText('4 succeeded, 1 failed, 0 open in the last 30 days')
  await expect(
    page
      .getByRole('table', { name: 'Transfers per day', includeHidden: true })
      .getByRole('row', { includeHidden: true }),
  ).toHaveCount(31)
})

test('shows a relay job with its channels and timings', async ({ page }) => {
  expect((await payroll.ask('POST', '/batch', { amounts: [1, 2] })).status).toBe(200)
  await visit(page, program, '/jobs')
  await expect(page.getByRole('region', { name: 'Channels' }).getByRole('listitem')).toHaveCount(3)
  const job = page.getByRole('row').nth(1)
  await expect(job).toContainText('Completed')
  await expect(job).toContainText('2/2')
  await job.getByRole('link', { name: /^Job / }).click()
  await expect(page.getByRole('heading', { level: 1, name: /^Job / })).toBeVisible()
  await expect(page.getByRole('row')).toHaveCount(3)
  await expect(page.getByRole('row').last()).toContainText(/Paid.*\d\.\d s.*\d\.\d s/)
})

test('escapes names that look like markup', async ({ page }) => {
  for (const path of ['/batches', '/contractors', '/audit', `/batches/${failed}`]) {
    await visit(page, program, path)
    await expect(page.getByRole('main')).toContainText(ORGANISATION)
    expect(await page.title()).not.toContain('taken over')
  }
  await page.goto(`${program.base}/contractors`)
  await expect(rowOf(page, SCRIPT)).toBeVisible()
  await expect(rowOf(page, IMAGE)).toBeVisible()
  await page.goto(`${program.base}/batches`)
  await expect(page.getByRole('link', { name: SCRIPT })).toBeVisible()
  expect(await page.title()).not.toContain('taken over')
  expect(await page.locator('main img, main script').count()).toBe(0)
})

test('shows no amount on any page', async ({ page }) => {
  await visit(page, program)
  for (const path of [...PAGES.map(([path]) => path), `/batches/${failed}`]) {
    const answer = await page.goto(`${program.base}${path}`)
    const source = (await answer?.text()) ?? ''
    expect(source, path).not.toMatch(/7,?654\.321/)
    expect(source, path).not.toContain('>sealed</')
    expect(source, path).not.toMatch(/encryptedAmount|rateAmount/)
  }
})

test('keeps filters in the URL, and reports filters that the list does not have', async ({ page }) => {
  await visit(page, program, '/audit')
  await page.getByLabel('Action').selectOption('organisation.founded')
  await page.getByRole('button', { name: 'Filter' }).click()
  await expect(page.getByRole('row')).toHaveCount(2)
  await page.getByText('Raw entry').click()
  await page.getByRole('link', { name: 'Entries by this actor' }).click()
  await expect(page.getByRole('link', { name: `Remove the filter By: ${ORGANISATION}` })).toBeVisible()
  await page.goto(`${program.base}/transfers?page=nonsense&after=x&view=open`)
  const ignored = page.getByRole('alert').filter({ hasText: 'page=nonsense, after=x' })
  await ignored.getByRole('link', { name: 'Remove' }).click()
  await expect(page).toHaveURL(`${program.base}/transfers?view=open`)
  // Names that every object inherits are no others than any.
  for (const name of ['constructor', 'toString']) {
    const response = await page.goto(`${program.base}/transfers?${name}=x`)
    expect(response?.status()).toBe(200)
    await expect(page.getByRole('alert').filter({ hasText: `${name}=x` })).toBeVisible()
  }
  const file = await page.request.get(`${program.base}/transfers.csv?view=gone`)
  expect([file.status(), await file.json()]).toEqual([
    400,
    { error: 'unknown filter: view=gone', code: 'filter-unknown' },
  ])
})

test('links an organisation to its records, and filters each list by it', async ({ page }) => {
  await visit(page, program, '/organisations')
  const row = rowOf(page, ORGANISATION)
  await row.getByRole('link', { name: '4', exact: true }).click()
  await expect(page.getByRole('heading', { level: 1, name: 'Contractors' })).toBeVisible()
  await expect(page.getByText('4 contractors found')).toBeVisible()
  await page.getByRole('link', { name: `Remove the filter Organisation: ${ORGANISATION}` }).click()
  await expect(page.getByText('4 contractors', { exact: true })).toBeVisible()
})

test('exports payouts and the audit log as CSV without formulas', async ({ page }) => {
  expect((await payroll.ask('POST', '/batches', { name: '=1+1' })).status).toBe(200)
  await visit(page, program, '/batches')
  const download = page.waitForEvent('download')
  await page.getByRole('link', { name: 'All payouts as CSV' }).click()
  expect((await download).suggestedFilename()).toMatch(/^payouts-\d{4}-\d\d-\d\d\.csv$/)
  const payouts = await (await page.request.get(`${program.base}/payouts.csv`)).text()
  expect(payouts.split('\r\n')).toHaveLength(1 + 5 + 1)
  expect(payouts).toContain('Grace Hopper')
  expect(payouts).not.toContain('sealed')
  const [head, ...lines] = payouts
    .trimEnd()
    .split('\r\n')
    .map((line) => line.split(','))
  const [status, hash] = [head?.indexOf('Status') ?? -1, head?.indexOf('Transaction') ?? -1]
  // The failed payout's transfer expired, so no ledger has it.
  expect(lines.map((line) => `${line[status]} ${/^[0-9a-f]{64}$/.test(line[hash] ?? '') || line[hash]}`)).toContain(
    'Failed ',
  )
  expect(lines.filter((line) => line[status] === 'Paid').every((line) => line[hash]?.length === 64)).toBe(true)
  const audit = await page.request.get(`${program.base}/audit.csv?action=batch.created`)
  expect((await audit.text()).split('\r\n')).toHaveLength(1 + 3 + 1)
  expect((await fetch(`${program.base}/payouts.csv`)).status).toBe(401)
})

test('links a hash to its transaction, and copies the full address', async ({ page, context }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  await page.clock.install()
  await visit(page, program, '/transfers?view=refused')
  await expect(page.getByText('Live', { exact: true })).toBeVisible()
  // 'Copied' disappears after two seconds, which do not pass while the clock is paused.
  await page.clock.pauseAt(Date.now() + 60_000)
  const account = payroll.employer.signer.publicKey()
  await page
    .getByRole('button', { name: `Copy ${account}` })
    .filter({ visible: true })
    .first()
    .click()
  await expect(page.getByText('Copied')).toBeVisible()
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(account)
  const code = page.locator('td .hash code').filter({ hasText: account, visible: true }).first()
  await code.dblclick()
  expect(await page.evaluate(() => getSelection()?.toString())).toBe(account)
  // A double click expands it.
  expect(await code.evaluate((element) => element.scrollWidth <= element.clientWidth)).toBe(true)
  await page.goto(`${program.base}/transfers?view=succeeded`)
  await page.locator('tbody a[href^="/transfers/"]').filter({ visible: true }).first().click()
  await page.locator('dl a[href^="/ledger/"]').first().click()
  await expect(page.getByRole('heading', { level: 1, name: 'Transaction' })).toBeVisible()
  const main = page.getByRole('main')
  await expect(main).toContainText('Succeeded')
  await expect(main).toContainText('confidential_transfer')
  await expect(main).toContainText('(fee bump)')
  await page.goto(`${program.base}/ledger/${'0'.repeat(64)}`)
  await expect(main).toContainText('The RPC has no record of it')
})

test('makes everything reachable by keyboard', { tag: '@long' }, async ({ page }) => {
  await page.goto(`${program.base}/sign-in`)
  await page.keyboard.press('Tab')
  await expect(page.getByLabel('Your name')).toBeFocused()
  await page.keyboard.type('Ada')
  await page.keyboard.press('Tab')
  await expect(page.getByLabel('Password')).toBeFocused()
  await page.keyboard.type('a password for the tests')
  await page.keyboard.press('Enter')
  await expect(page).toHaveURL(`${program.base}/overview`)
  await page.goto(`${program.base}/batches`)
  await page.keyboard.press('Tab')
  await expect(page.getByRole('link', { name: 'Skip to the content' })).toBeFocused()
  await expect(page.getByRole('link', { name: 'Skip to the content' })).toBeInViewport()
  await page.keyboard.press('Enter')
  await page.keyboard.press('Tab')
  await expect(page.getByRole('link', { name: /^All \d/ })).toBeFocused()
  await expect(page.getByText('Live', { exact: true })).toBeVisible()
  await page.keyboard.press('/')
  await expect(page.getByRole('searchbox', { name: 'Search' })).toBeFocused()
  await page.keyboard.type('bonus')
  await page.keyboard.press('Enter')
  await expect(page.getByText('1 record found')).toBeVisible()
  await page.getByRole('link', { name: 'Skip to the content' }).focus()
  await page.keyboard.press('Enter')
  await page.keyboard.press('Tab')
  await expect(page.getByRole('link', { name: 'Bonus round' })).toBeFocused()
  await page.keyboard.press('Control+k')
  await expect(page.getByRole('searchbox', { name: 'Search' })).toBeFocused()
  await page.getByRole('link', { name: 'Bonus round' }).focus()
  await page.keyboard.press('Enter')
  await expect(page.getByRole('heading', { level: 1, name: 'Bonus round' })).toBeVisible()
})

test.describe('without JavaScript', () => {
  test.use({ javaScriptEnabled: false })

  test('shows the same content on every page', async ({ page }) => {
    await visit(page, program)
    await expect(page.getByRole('main')).toContainText(/\d succeeded, \d failed/)
    for (const [path, title] of PAGES) {
      await page.goto(`${program.base}${path}`)
      await expect(page.getByRole('heading', { level: 1, name: title })).toBeVisible()
    }
    await page.goto(`${program.base}/batches`)
    await page.getByRole('link', { name: 'Bonus round' }).click()
    await expect(rowOf(page, 'Grace Hopper')).toContainText('another transaction of the account')
    await expect(page.getByText('Reload for newer figures')).toBeVisible()
  })
})
