import { readFileSync } from 'node:fs'
import { expect, test } from '@playwright/test'
import { createServer, type ViteDevServer } from 'vite'
import { freePort } from '../support/port.ts'
import { QUICK_LEDGER, type RunningProgram, runProgram } from './running-program.ts'

const EXAMPLE = new URL('./example', import.meta.url).pathname

let program: RunningProgram
let frontend: ViteDevServer
let origin: string
test.beforeAll(async () => {
  program = await runProgram({ ...QUICK_LEDGER, BATCH_ENABLED: 'false', DEVNET_PROOFS: 'real' })
  const port = await freePort()
  origin = `http://localhost:${port}`
  frontend = await createServer({
    root: EXAMPLE,
    logLevel: 'warn',
    server: { port, strictPort: true, hmr: false, watch: null },
  })
  await frontend.listen()
})
test.afterAll(async () => {
  await frontend?.close()
  await program?.stop()
})

test('signs in, imports, proves, pays and polls from another origin with the generated client', async ({ page }) => {
  const query = new URLSearchParams({ api: `${program.base}/api`, deployment: program.deploymentUrl })
  await page.goto(`${origin}/?${query}`)
  const steps = page.getByRole('listitem')
  await expect(steps.filter({ hasText: /the contractor reads|Error/ })).toBeVisible({ timeout: 500_000 })
  expect(await steps.allTextContents()).toEqual([
    'registered two wallets',
    expect.stringMatching(/^signed in as G[A-Z2-7]{55}$/),
    'imported 1, refused row 2: name required',
    'locked a batch of 1',
    'proved the transfer',
    expect.stringMatching(/^paid: SUCCESS [0-9a-f]{64}$/),
    'the batch is completed: 1 of 1 paid',
    'the contractor reads 125000000 base units',
  ])
})

test('is quoted in the walkthrough', () => {
  const walkthrough = readFileSync(new URL('../../docs/walkthrough.md', import.meta.url), 'utf8')
  for (const file of ['payroll.ts', 'prover.ts']) {
    expect(walkthrough).toContain(readFileSync(`${EXAMPLE}/${file}`, 'utf8'))
  }
})
