import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { buildIfStale } from '#lib/cli/build.ts'
import { freePort } from '../support/port.ts'
import type { Figure } from './directory.ts'

/** `npm run demo -- --once` with real proofs, in an empty folder, after the build. */
export async function measureDemo(): Promise<Figure> {
  buildIfStale()
  const directory = await mkdtemp(join(tmpdir(), 'payroll-bench-demo-'))
  const [port, ledgerPort, relayPort] = [await freePort(), await freePort(), await freePort()]
  const began = performance.now()
  const child = spawn(process.execPath, ['lib/cli/demo.ts', '--once'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...process.env,
      PORT: String(port),
      PUBLIC_URL: `http://localhost:${port}`,
      DATA_DIR: directory,
      DEVNET_PORT: String(ledgerPort),
      RELAY_PORT: String(relayPort),
      DEVNET_PROOFS: 'real',
    },
  })
  const lines: string[] = []
  createInterface(child.stdout).on('line', (line) => lines.push(line))
  const [code] = await once(child, 'close')
  await rm(directory, { recursive: true, force: true })
  const seconds = (performance.now() - began) / 1_000
  const proofs = lines.filter((line) => /proving \d+ of \d+/.test(line)).length
  const outcome = code === 0 ? lines.at(-1) : `it ended with code ${code}`
  return {
    name: 'the demo with real proofs, after the build',
    found: `${seconds.toFixed(1)} s, ${proofs} proofs announced; ${outcome}`,
    goal: 'at most 180 s, 25 proofs',
  }
}
