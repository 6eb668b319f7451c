import { gzipSync } from 'node:zlib'
import { type Browser, type BrowserContextOptions, expect } from '@playwright/test'

/** How many more bytes than an empty page a page may load. */
export const ALLOWANCE = 25_000

/** The compressed size of the scripts that a URL loads into a fresh browser. */
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

/** The script bytes of the 404 page, which loads only shared scripts. */
export async function emptyPageBytes(browser: Browser, base: string): Promise<number> {
  const bytes = await scriptBytes(browser, `${base}/nowhere`)
  expect(bytes).toBeGreaterThan(50_000)
  return bytes
}
