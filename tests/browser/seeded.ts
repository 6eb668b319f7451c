import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Browser, expect, type Page } from '@playwright/test'
import { openTestNetwork } from '#lib/cli/client/participants.ts'
import { expandAll, visit } from './operator.ts'
import { type RunningProgram, runProgram } from './running-program.ts'

/** A service with the records of `npm run seed`. */
export interface SeededProgram extends RunningProgram {
  /** the address of every operator page, with few rows because each press of Tab takes time */
  addresses: readonly string[]
}

export async function runSeeded(browser: Browser): Promise<SeededProgram> {
  const directory = mkdtempSync(join(tmpdir(), 'payroll-seeded-'))
  execFileSync(process.execPath, ['lib/cli/seed.ts'], { env: { ...process.env, DATA_DIR: directory } })
  const program = await runProgram({ DATA_DIR: directory })
  const stop = async () => {
    await program.stop()
    rmSync(directory, { recursive: true, force: true })
  }
  return { ...program, stop, addresses: await findAddresses(browser, program) }
}

async function findAddresses(browser: Browser, program: RunningProgram): Promise<string[]> {
  const page = await browser.newPage()
  await visit(page, program, '/batches?status=failed')
  const failed = (await page.getByRole('link', { name: 'Weekend shift' }).getAttribute('href')) ?? ''
  const records = []
  for (const list of ['/transfers?view=failed', '/jobs?status=failed', '/contractors?status=ready', '/organisations']) {
    await page.goto(`${program.base}${list}`)
    const path = new URL(list, program.base).pathname
    records.push((await page.locator(`tbody a[href^="${path}/"]`).first().getAttribute('href')) ?? '')
  }
  await page.goto(`${program.base}${failed}`)
  records.push((await page.locator('tbody a[href^="/payouts/"]').last().getAttribute('href')) ?? '')
  await page.close()
  return [
    '/overview',
    '/overview?range=30d',
    '/batches?status=started',
    failed,
    ...records,
    '/transfers?view=failed',
    '/transfers?view=refused',
    '/transfers?account=nobody',
    '/transfers?view=gone',
    '/search',
    '/search?q=grace',
    '/search?q=nobody',
    '/contractors?status=onboarding',
    '/organisations',
    '/jobs',
    '/audit?action=batch.failed',
    `/ledger/${await someTransaction(program)}`,
    `/ledger/${'0'.repeat(64)}`,
  ]
}

/** The hash of a transaction in the service's ledger. */
async function someTransaction({ deploymentUrl }: RunningProgram): Promise<string> {
  const { rpc } = await openTestNetwork(deploymentUrl)
  const { transactions } = await rpc.getTransactions({ startLedger: 2, pagination: { limit: 1 } })
  return transactions[0]?.txHash ?? ''
}

/** Opens the page at `address` and expands everything on it. */
export async function openAll(page: Page, program: RunningProgram, address: string): Promise<void> {
  await visit(page, program, address)
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
  await expect(page.getByText('Live', { exact: true })).toBeVisible()
  await expandAll(page.locator('body'))
}
