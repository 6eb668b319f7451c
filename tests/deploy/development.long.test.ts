import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdtempSync, renameSync, rmSync, statSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium } from '@playwright/test'
import { expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { answers } from '#lib/cli/process/serve.ts'
import { findChromium } from '../browser/chromium.ts'
import { CHILD_VARIABLES } from '../support/child-variables.ts'
import { freePort } from '../support/port.ts'

const EDITED = 'lib/relay/host.ts'

/** What a browser reports as an error on the start page, the overview, the docs and an invite. */
async function consoleErrorsOf(base: string, password: string): Promise<string[]> {
  const browser = await chromium.launch({ executablePath: findChromium(), args: ['--no-sandbox'] })
  try {
    const page = await browser.newPage()
    // Each page is compiled when it is first opened.
    page.setDefaultTimeout(120_000)
    const errors: string[] = []
    page.on('console', (message) => message.type() === 'error' && errors.push(`${page.url()}: ${message.text()}`))
    page.on('pageerror', (error) => errors.push(`${page.url()}: ${error.message}`))
    await page.goto(`${base}/sign-in`)
    await page.getByLabel('Your name').fill('Ada Operator')
    await page.getByLabel('Password').fill(password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.waitForURL(`${base}/overview`)
    // Leaving a page while it loads is reported as an error, too.
    await page.waitForLoadState('networkidle')
    for (const path of ['/', '/overview', '/docs', '/invite/unknown']) {
      await page.goto(base + path)
      // The pages' own scripts have run once they have connected for hot reload.
      await page.waitForLoadState('networkidle')
    }
    // The page of an unknown invite is a 404, which is no error of the page.
    return errors.filter((error) => !/invite\/unknown: .* status of 404/.test(error))
  } finally {
    await browser.close()
  }
}

test('npm run dev serves pages that reload, without console errors, restarts after an edit of the relay, and ends with SIGTERM', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'payroll-dev-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  const [port, devnetPort, relayPort] = [await freePort(), await freePort(), await freePort()]
  const base = `http://localhost:${port}`
  const child = spawn(process.execPath, ['lib/cli/dev.ts'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...CHILD_VARIABLES,
      PORT: String(port),
      DEVNET_PORT: String(devnetPort),
      RELAY_PORT: String(relayPort),
      DATA_DIR: directory,
      DEVNET_PROOFS: 'stand-in',
    } as unknown as NodeJS.ProcessEnv,
  })
  onTestFinished(async () => {
    // Next's server is a process that SIGKILL would leave behind.
    if (child.kill('SIGTERM')) await once(child, 'exit')
  })
  let printed = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text
  })
  await expect.poll(() => answers(base), { interval: 200 }).toBe(true)

  const page = await fetch(base)
  expect(page.status).toBe(200)
  // React evaluates code in development only.
  expect(page.headers.get('content-security-policy')).toContain("'unsafe-eval'")
  const socket = new WebSocket(`ws://127.0.0.1:${port}/_next/hmr?id=test`, { origin: base })
  await once(socket, 'open')
  socket.terminate()
  // The listener in front of Next still screens everything else.
  expect((await fetch(base, { method: 'POST' })).status).toBe(405)

  await expect.poll(() => printed, { interval: 200 }).toContain('its password is')
  const [, password = ''] = /its password is (\S+)/.exec(printed) ?? []
  expect(await consoleErrorsOf(base, password)).toEqual([])

  // Some editors write to the file, and others, like git, replace it. Its contents and times stay what they are.
  const { atime, mtime } = statSync(EDITED)
  const edits = [
    () => utimesSync(EDITED, atime, mtime),
    () => {
      copyFileSync(EDITED, `${EDITED}.new`)
      utimesSync(`${EDITED}.new`, atime, mtime)
      renameSync(`${EDITED}.new`, EDITED)
    },
    () => utimesSync(EDITED, atime, mtime),
  ]
  for (const [index, edit] of edits.entries()) {
    edit()
    const restarts = () => printed.split('The service has restarted in').length - 1
    await expect.poll(restarts, { interval: 200 }).toBe(index + 1)
  }
  expect(printed).toContain(`${EDITED} has changed: restarting the service`)

  child.kill('SIGTERM')
  await once(child, 'exit')
  expect(await answers(base)).toBe(false)
})
