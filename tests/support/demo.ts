import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { freePort } from './port.ts'

/** Runs `npm run demo -- --once` in an empty folder. Resolves to its exit code and the lines that it printed. */
export async function runDemo(variables: Record<string, string>): Promise<{ code: number | null; lines: string[] }> {
  const directory = await mkdtemp(join(tmpdir(), 'payroll-demo-'))
  const [port, ledgerPort, relayPort] = [await freePort(), await freePort(), await freePort()]
  const child = spawn(process.execPath, ['lib/cli/demo.ts', '--once'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...process.env,
      PORT: String(port),
      PUBLIC_URL: `http://localhost:${port}`,
      DATA_DIR: directory,
      DEVNET_PORT: String(ledgerPort),
      RELAY_PORT: String(relayPort),
      ...variables,
    },
  })
  const lines: string[] = []
  createInterface(child.stdout).on('line', (line) => lines.push(line))
  const [code] = await once(child, 'close')
  await rm(directory, { recursive: true, force: true })
  return { code, lines }
}
