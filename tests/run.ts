import { spawn } from 'node:child_process'
import { once } from 'node:events'

// Runs the browser tests beside all others, since neither keeps two cores busy to its end. Their output is one block.
const others = spawn('vitest', ['run', '--config', 'tests/vitest.config.ts'], { stdio: 'inherit' })
const browser = spawn('playwright', ['test', '--config', 'tests/playwright.config.ts'], {
  stdio: ['ignore', 'pipe', 'pipe'],
})
const output: Buffer[] = []
for (const stream of [browser.stdout, browser.stderr]) stream.on('data', (part: Buffer) => output.push(part))

const ends = [others, browser].map(async (tests) => {
  const [code] = await once(tests, 'close')
  if (tests === browser) process.stdout.write(Buffer.concat(output))
  return code === 0
})
const passed = await Promise.all(ends)
process.exitCode = passed.every(Boolean) ? 0 : 1
