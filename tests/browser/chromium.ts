import { spawnSync } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { chromium } from '@playwright/test'

const INSTALLED = [
  // It opens no windows, so a new page takes much less CPU.
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome-stable',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
]

/** Finds an installed browser, or else Playwright's. */
export function findChromium(): string {
  return INSTALLED.find(isFile) ?? chromium.executablePath()
}

/** Installs a browser if `findChromium` finds none: Playwright's, or else Debian's. */
export function installChromium(): void {
  if (isFile(findChromium())) return
  const playwright = fileURLToPath(import.meta.resolve('@playwright/test/cli'))
  const ways: [string, string[]][] = [
    [process.execPath, [playwright, 'install', '--with-deps', 'chromium-headless-shell', 'chromium']],
    ['apt-get', ['update']],
    ['apt-get', ['install', '-y', '--no-install-recommends', 'chromium-headless-shell']],
    ['apt-get', ['install', '-y', '--no-install-recommends', 'chromium']],
  ]
  for (const [program, args] of ways) {
    if (isFile(findChromium())) return
    spawnSync(program, args, { stdio: 'inherit' })
  }
  if (!isFile(findChromium())) throw new Error('no Chromium was found, and none could be installed')
}

function isFile(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}
