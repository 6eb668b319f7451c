import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from '@playwright/test'
import { createServer, type ViteDevServer } from 'vite'
import { freePort } from '../support/port.ts'
import { test } from './fixtures.ts'
import { type RunningProgram, runProgram } from './running-program.ts'

const run = promisify(execFile)

/** A separate project outside the repository: the example, with the package that the service serves. */
let project: string
let program: RunningProgram
let frontend: ViteDevServer
let origin: string
test.beforeAll(async () => {
  test.setTimeout(600_000)
  program = await runProgram({ DEVNET_PROOFS: 'real' })
  project = mkdtempSync(join(tmpdir(), 'payroll-frontend-'))
  cpSync('docs/examples/vite', project, { recursive: true })
  await run('npm', ['install', '--no-audit', '--no-fund', `${program.base}/sdk`], { cwd: project })
  await run(join('node_modules', '.bin', 'tsc'), ['--project', project])
  const port = await freePort()
  origin = `http://localhost:${port}`
  frontend = await createServer({
    root: project,
    logLevel: 'warn',
    server: { port, strictPort: true, hmr: false, watch: null },
  })
  await frontend.listen()
  // The relay creates its channels with real proofs.
  for (;;) {
    const ready = await fetch(`${program.base}/api/ready`)
    const { relay } = (await ready.json()) as { relay: { ok: boolean; problem?: string } }
    if (relay.ok && relay.problem === undefined) break
    await new Promise((resolve) => setTimeout(resolve, 1_000))
  }
})
test.afterAll(async () => {
  await frontend?.close()
  await program?.stop()
  if (project) rmSync(project, { recursive: true, force: true })
})

const JOURNEY = 'signs in, imports, invites, proves, pays, runs and discloses with the package for frontends'
test(JOURNEY, { tag: '@long' }, async ({ page }) => {
  const query = new URLSearchParams({ service: program.base, network: program.deploymentUrl })
  await page.goto(`${origin}/?${query}`)
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

test('is quoted in the walkthrough', { tag: '@long' }, () => {
  const walkthrough = readFileSync('docs/walkthrough.md', 'utf8')
  for (const file of ['node/pay.ts', 'vite/payroll.ts', 'vite/vite.config.ts']) {
    expect(walkthrough).toContain(readFileSync(`docs/examples/${file}`, 'utf8'))
  }
  const [vite, next] = ['vite', 'next/app'].map((folder) => readFileSync(`docs/examples/${folder}/payroll.ts`, 'utf8'))
  expect(next).toBe(vite)
})
