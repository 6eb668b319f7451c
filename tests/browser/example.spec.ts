import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from '@playwright/test'
import { createServer, type ViteDevServer } from 'vite'
import { freePort } from '../support/port.ts'
import { QUICK_LEDGER, type RunningProgram, runProgram } from './running-program.ts'

const run = promisify(execFile)

/** A separate project outside the repository: the example, with the package that the service serves. */
let project: string
let program: RunningProgram
let frontend: ViteDevServer
let origin: string
test.beforeAll(async () => {
  test.setTimeout(300_000)
  program = await runProgram({ ...QUICK_LEDGER, BATCH_ENABLED: 'false', DEVNET_PROOFS: 'real' })
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
})
test.afterAll(async () => {
  await frontend?.close()
  await program?.stop()
  if (project) rmSync(project, { recursive: true, force: true })
})

test('signs in, imports, proves, pays and discloses from another origin with the package for frontends', async ({
  page,
}) => {
  const query = new URLSearchParams({ service: program.base, network: program.deploymentUrl })
  await page.goto(`${origin}/?${query}`)
  const steps = page.getByRole('listitem')
  await expect(steps.filter({ hasText: /the bank has verified|Error/ })).toBeVisible({ timeout: 500_000 })
  expect(await steps.allTextContents()).toEqual([
    'proving 1 of 3',
    expect.stringMatching(/^proving 2 of 3, about \d+ s left$/),
    expect.stringMatching(/^signed in as G[A-Z2-7]{55}$/),
    'imported 1, refused row 2: name required',
    'locked a batch of 1',
    expect.stringMatching(/^proving 3 of 3, about \d+ s left$/),
    expect.stringMatching(/^paid: SUCCESS [0-9a-f]{64}$/),
    'the contractor reads 125000000 base units',
    'the bank has verified 125000000 base units',
  ])
  await expect(page.getByRole('progressbar')).toHaveJSProperty('value', 9)
})

test('is quoted in the walkthrough', () => {
  const walkthrough = readFileSync('docs/walkthrough.md', 'utf8')
  for (const file of ['node/pay.ts', 'vite/payroll.ts', 'vite/vite.config.ts']) {
    expect(walkthrough).toContain(readFileSync(`docs/examples/${file}`, 'utf8'))
  }
  const [vite, next] = ['vite', 'next/app'].map((folder) => readFileSync(`docs/examples/${folder}/payroll.ts`, 'utf8'))
  expect(next).toBe(vite)
})
