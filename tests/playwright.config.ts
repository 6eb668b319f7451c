import { defineConfig } from '@playwright/test'
import { findChromium } from './browser/chromium.ts'

/** `npm test`, `npm run test:long`, or both for files named on the command line (run.ts). */
const suite = process.env.TEST_SUITE ?? 'all'
const LONG = /@long/

export default defineConfig({
  testDir: './browser',
  ...(suite === 'long' && { grep: LONG }),
  ...(suite === 'quick' && { grepInvert: LONG }),
  outputDir: '../test-results',
  globalSetup: './browser/global-setup.ts',
  // Most files start a whole service. One at a time shares two cores with the tests of vitest, and all other files share
  // one service.
  workers: 1,
  // These limits only end a test whose event never comes. They are far longer than any test takes on a busy machine.
  timeout: 600_000,
  expect: { timeout: 120_000 },
  // `npm test` shows this output after that of vitest, whose failures shall stay near the end.
  reporter: process.stdout.isTTY ? 'list' : 'dot',
  use: {
    browserName: 'chromium',
    viewport: { width: 1440, height: 900 },
    // A sandbox needs privileges that a container does not give.
    launchOptions: { executablePath: findChromium(), args: ['--no-sandbox'] },
  },
})
