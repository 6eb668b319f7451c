import { gzipSync } from 'node:zlib'
import { type Browser, type BrowserContextOptions, expect } from '@playwright/test'

/** The bytes that a page may load over an empty one. */
export const ALLOWANCE = 25_000

/** The bytes of the scripts that an address loads into a fresh browser, compressed. */
export async function scriptBytes(
  browser: Browser,
  address: string,
  options: BrowserContextOptions = {},
): Promise<number> {
  const context = await browser.newContext(options)
  const page = await context.newPage()
  const sizes: Promise<number>[] = []
  page.on('response', (response) => {
    if (response.request().resourceType() !== 'script') return
    sizes.push(response.body().then((body) => gzipSync(body).length))
  })
  await page.goto(address, { waitUntil: 'networkidle' })
  const bytes = (await Promise.all(sizes)).reduce((total, size) => total + size, 0)
  await context.close()
  return bytes
}

/** The same of a page that has nothing of its own: the one that says that there is none. */
export async function emptyPageBytes(browser: Browser, base: string): Promise<number> {
  const bytes = await scriptBytes(browser, `${base}/nowhere`)
  expect(bytes).toBeGreaterThan(50_000)
  return bytes
}
