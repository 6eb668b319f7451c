import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, type Page } from '@playwright/test'
import { test } from './fixtures.ts'
import { type RunningProgram, runProgram } from './running-program.ts'

let program: RunningProgram
test.beforeAll(({ shared }) => {
  program = shared
})

const PAGES = [
  '/',
  '/sign-in',
  '/docs',
  '/docs/contractors',
  '/invite/nothing',
  '/nowhere',
  '/docs/x',
  '/docs/a/b/c',
  '/iconx',
  '/.well-known/x',
]

/** Opens a page into which an attacker has injected `markup`. */
async function openWith(page: Page, path: string, markup: string): Promise<void> {
  await page.route(`${program.base}${path}`, async (route) => {
    const response = await route.fetch()
    const body = (await response.text()).replace('</body>', `${markup}</body>`)
    // The framework may remove the markup later, but the browser received it.
    expect(body).toContain(markup)
    await route.fulfill({ response, body })
  })
  await page.goto(`${program.base}${path}`)
}

test('does not run a script injected into a page', async ({ page }) => {
  const attacks = [
    '<script>window.stolen = 1</script>',
    '<img src="/nothing.png" onerror="window.stolen = 2">',
    '<script src="data:text/javascript,window.stolen=3"></script>',
    '<script src="https://evil.example/x.js"></script>',
    '<a id="trap" href="javascript:window.stolen=4">x</a>',
  ].join('')
  for (const path of PAGES) {
    await openWith(page, path, attacks)
    await page.evaluate(() => document.querySelector<HTMLElement>('#trap')?.click())
    expect(await page.evaluate(() => (window as { stolen?: number }).stolen)).toBeUndefined()
    await page.unrouteAll()
  }
})

test('refuses to be framed by another site', async ({ page }) => {
  const server = createServer((request, response) => {
    const framed = new URL(request.url ?? '', 'http://x').searchParams.get('page')
    response.setHeader('Content-Type', 'text/html').end(`<iframe src="${program.base}${framed}"></iframe>`)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  for (const path of PAGES) {
    await page.goto(`http://127.0.0.1:${port}/?page=${encodeURIComponent(path)}`)
    const [, frame] = page.frames()
    await expect.poll(() => frame?.url()).toMatch(/^chrome-error:/)
  }
  server.close()
})

test('sends security headers on every page, and no HSTS over plain HTTP', async ({ request }) => {
  const nonces = new Set<string>()
  for (const path of PAGES) {
    const answer = await request.get(`${program.base}${path}`)
    const headers = answer.headers()
    expect(headers['x-content-type-options']).toBe('nosniff')
    expect(headers['referrer-policy']).toBe('same-origin')
    expect(headers['strict-transport-security']).toBeUndefined()
    const policy = headers['content-security-policy'] ?? ''
    expect(policy).toContain("frame-ancestors 'none'")
    const [script = ''] = /script-src [^;]*/.exec(policy) ?? []
    expect(script).not.toContain('unsafe')
    for (const [, nonce = ''] of script.matchAll(/'nonce-([^']+)'/g)) {
      expect(nonces.has(nonce)).toBe(false)
      nonces.add(nonce)
    }
  }
  expect(nonces.size).toBe(PAGES.length)
})

test('sends HSTS over HTTPS', async ({ request }) => {
  const secure = await runProgram({ BATCH_ENABLED: 'false', PUBLIC_URL: 'https://pay.example' })
  for (const path of ['/sign-in', '/docs']) {
    const answer = await request.get(`${secure.base}${path}`)
    expect(answer.headers()['strict-transport-security']).toMatch(/^max-age=\d{8}/)
  }
  await secure.stop()
})
