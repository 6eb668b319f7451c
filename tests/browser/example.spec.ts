import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from '@playwright/test'
import { createServer, type ViteDevServer } from 'vite'
import { installSdk } from '../support/install-sdk.ts'
import { freePort } from '../support/port.ts'
import { test } from './fixtures.ts'
import { type RunningProgram, runProgram } from './running-program.ts'

const run = promisify(execFile)

const NAMES = ['vite', 'react'] as const
type Name = (typeof NAMES)[number]

/** Separate projects outside the repository: the examples, with the package that the service serves. */
let projects: string
let program: RunningProgram
const frontends: ViteDevServer[] = []
const origins = {} as Record<Name, string>
const query = () => new URLSearchParams({ service: program.base, network: program.deploymentUrl })
test.beforeAll(async () => {
  test.setTimeout(600_000)
  program = await runProgram({ DEVNET_PROOFS: 'real' })
  projects = mkdtempSync(join(tmpdir(), 'payroll-frontend-'))
  for (const name of NAMES) {
    const project = join(projects, name)
    cpSync(`docs/examples/${name}`, project, { recursive: true })
    await installSdk(program.base, project)
    await run(join('node_modules', '.bin', 'tsc'), ['--project', project], { cwd: project })
    const port = await freePort()
    origins[name] = `http://localhost:${port}`
    const server = { port, strictPort: true, hmr: false, watch: null }
    const frontend = await createServer({ root: project, logLevel: 'warn', server })
    frontends.push(await frontend.listen())
  }
  // The relay creates its channels with real proofs.
  for (;;) {
    const ready = await fetch(`${program.base}/api/ready`)
    const { relay } = (await ready.json()) as { relay: { ok: boolean; problem?: string } }
    if (relay.ok && relay.problem === undefined) break
    await new Promise((resolve) => setTimeout(resolve, 1_000))
  }
})
test.afterAll(async () => {
  for (const frontend of frontends) await frontend.close()
  await program?.stop()
  if (projects) rmSync(projects, { recursive: true, force: true })
})

const JOURNEY = 'signs in, imports, invites, proves, pays, runs and discloses with the package for frontends'
test(JOURNEY, { tag: '@long' }, async ({ page }) => {
  await page.goto(`${origins.vite}/?${query()}`)
  const steps = page.getByRole('listitem')
  const progress = page.getByRole('progressbar')
  await expect(steps.filter({ hasText: 'proving 1 of 4' })).toBeVisible()
  await expect(progress).toBeInViewport()
  expect(await progress.evaluate((bar: HTMLProgressElement) => bar.value / bar.max)).toBeLessThan(1)
  await expect(steps.filter({ hasText: /the bank has verified|Error/ })).toBeVisible({ timeout: 500_000 })
  // On a slow machine, a delegation may expire while it is being proved, and then another one is proved.
  const repeatable = /^(proving|Delegating|Trying again|The service says: (ready|started))\b/
  const said = await steps.allTextContents()
  expect(said.filter((step) => repeatable.test(step))).toEqual(
    expect.arrayContaining([
      'proving 1 of 4',
      expect.stringMatching(/^proving 2 of 4, about \d+ s left$/),
      expect.stringMatching(/^Delegating to G[A-Z2-7]{55} until ledger \d+$/),
      expect.stringMatching(/^proving 4 of 4, about \d+ s left$/),
    ]),
  )
  expect(said.filter((step) => !repeatable.test(step))).toEqual([
    expect.stringMatching(/^signed in as G[A-Z2-7]{55}$/),
    'imported 2, refused row 3: name required',
    expect.stringMatching(/^invited Grace Hopper: http/),
    'locked a batch of 1',
    expect.stringMatching(/^paid: SUCCESS [0-9a-f]{64}$/),
    'Adding 1 payout',
    expect.stringMatching(/^Starting the run of batch [0-9a-f-]{36}$/),
    'The service says: completed, 1 of 1 paid',
    'Revoked: 0.0000000 returned',
    'the relay paid 1 of 1',
    'the contractor reads 155000000 base units',
    'the bank has verified 125000000 base units',
  ])
  await expect(progress).toHaveJSProperty('value', 20)
  const invite = page.getByRole('link', { name: `${program.base}/invite/` })
  await invite.click()
  await expect(page).toHaveURL(/\/invite\//)
  await expect(page.getByText('You are invited to be paid as a contractor.')).toBeVisible()
})

/** A registered account with nothing else. */
async function newPayee(): Promise<string> {
  const [secret = ''] = (await wallet('new')).trim().split('\n')
  return (await wallet('address', '--secret', secret)).trim()
}

async function wallet(...options: string[]): Promise<string> {
  const network = ['--service', program.base, '--network', program.deploymentUrl]
  const isLocal = options[0] === 'address'
  const { stdout } = await run(process.execPath, ['lib/cli/wallet.ts', ...options, ...(isLocal ? [] : network)])
  return stdout
}

test('a page in React pays a list, and continues after it was closed', { tag: '@long' }, async ({ page }) => {
  const payees = [await newPayee(), await newPayee()]
  await page.goto(`${origins.react}/?${query()}`)
  const list = page.getByRole('textbox', { name: 'Name, address and amount, one payee a line' })
  await list.fill(`Ada Lovelace, ${payees[0]}, 12.5\nGrace Hopper, ${payees[1]}, 3`)
  await page.getByRole('button', { name: 'Pay' }).click()
  const paid = page.getByRole('progressbar', { name: 'Paid' })
  await expect(paid).toHaveJSProperty('value', 1, { timeout: 200_000 })
  await page.reload()
  await page.getByRole('button', { name: 'Continue' }).click()
  await expect(page.getByRole('status')).toHaveText('Everyone is paid.', { timeout: 200_000 })
  await expect(page.getByRole('button', { name: 'Pay' })).toBeVisible()
  await expect(list).toHaveValue('')
  const statement = page.getByRole('list', { name: 'Statement' })
  await expect(statement.getByText(`sent 12.5000000 ${payees[0]}`)).toHaveCount(1)
  await expect(statement.getByText(`sent 3.0000000 ${payees[1]}`)).toHaveCount(1)
})

test('a page in React compares a run with a list before it signs', { tag: '@long' }, async ({ page }) => {
  await page.goto(`${origins.react}/approve.html?${query()}`)
  await expect(page.getByLabel('Your key')).toHaveValue(/"crv":"P-256"/)
  const [payee, account] = [await newPayee(), await newPayee()]
  await page.getByRole('textbox', { name: 'The account that pays' }).fill(account)
  await page.getByRole('textbox', { name: 'Batch' }).fill(crypto.randomUUID())
  await page.getByRole('textbox', { name: 'Your list' }).fill(`${payee}, 12.5`)
  await page.getByRole('textbox', { name: 'The amounts that you were given' }).fill('not encrypted to this key')
  await page.getByRole('button', { name: 'Compare and sign' }).click()
  await expect(page.getByRole('status')).toContainText('not encrypted to the key of this signer')
})

test('the examples are what the walkthrough says', { tag: '@long' }, () => {
  const walkthrough = readFileSync('docs/walkthrough.md', 'utf8')
  for (const file of ['node/pay.ts', 'vite/payroll.ts', 'vite/vite.config.ts']) {
    expect(walkthrough).toContain(readFileSync(`docs/examples/${file}`, 'utf8'))
  }
  expect(readFileSync('docs/examples/react/app.tsx', 'utf8').split('\n').length).toBeLessThan(100)
})
