import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from '@playwright/test'
import { freePort } from '../support/port.ts'
import { test } from './fixtures.ts'
import { DESKTOP, findFaults, NARROWEST } from './operator.ts'

let base: string
let directory: string
let next: ChildProcess
test.beforeAll(async () => {
  const port = await freePort()
  base = `http://localhost:${port}`
  directory = mkdtempSync(join(tmpdir(), 'payroll-preview-'))
  next = spawn(process.execPath, ['node_modules/next/dist/bin/next', 'start'], {
    env: {
      PATH: process.env.PATH ?? '',
      NODE_ENV: 'production',
      NEXT_TELEMETRY_DISABLED: '1',
      PORT: String(port),
      DATA_DIR: directory,
      VERCEL: '1',
      VERCEL_ENV: 'preview',
      VERCEL_URL: 'payroll-preview.vercel.app',
      DATABASE_URL: 'postgres://nobody@127.0.0.1:1/nothing',
    },
    stdio: 'ignore',
  })
  await expect.poll(() => fetch(base).then(({ status }) => status, String)).toBe(200)
})
test.afterAll(async () => {
  const ended = once(next, 'exit')
  next.kill('SIGKILL')
  await ended
  rmSync(directory, { recursive: true, force: true })
})

test('shows the missing variables of a preview with only a database, and how to get them', async ({ page }) => {
  for (const path of ['/', '/overview', '/batches', '/sign-in', '/docs', '/invite/any', '/invite/late']) {
    await page.goto(`${base}${path}`)
    await expect(page).toHaveURL(`${base}/`)
    const notice = page.getByRole('region', { name: 'This deployment has not started' })
    await expect(notice).toContainText('SESSION_SECRET')
    await expect(notice).toContainText('openssl rand')
  }
})

test('has no accessibility violations or clipped content, light and dark, desktop and phone', async ({ page }) => {
  await page.goto(base)
  expect(await findFaults(page, DESKTOP, NARROWEST)).toEqual([])
})
