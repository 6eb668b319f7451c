import { defineConfig } from '@playwright/test'
import { findChromium } from './browser/chromium.ts'

export default defineConfig({
  testDir: './browser',
  outputDir: '../test-results',
  globalSetup: './browser/global-setup.ts',
  // Each file has a service of its own, with ledger, database and relay: two of them fit two cores.
  workers: 2,
  timeout: 60_000,
  expect: { timeout: 15_000 },
  reporter: 'list',
  use: {
    browserName: 'chromium',
    viewport: { width: 1440, height: 900 },
    // A sandbox needs privileges that a container does not give.
    launchOptions: { executablePath: findChromium(), args: ['--no-sandbox'] },
  },
})
