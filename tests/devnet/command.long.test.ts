import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { freePort } from '../support/port.ts'

test('prints how to create keys and accounts for a standalone ledger', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'payroll-devnet-test-'))
  const port = await freePort()
  const child = spawn(process.execPath, ['lib/cli/devnet.ts'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, DATA_DIR: directory, DEVNET_PORT: String(port) },
  })
  try {
    const [output] = (await once(child.stdout, 'data')).map(String)
    expect(output).toContain(`STELLAR_RPC_URL=http://localhost:${port}/rpc`)
    const setup = `npm run setup -- --deployment http://localhost:${port}/deployment.json`
    expect(output).toMatch(new RegExp(`FAUCET_SEED=S[A-Z2-7]{55} ${setup}`))
  } finally {
    child.kill()
    await once(child, 'exit')
    await rm(directory, { recursive: true, force: true })
  }
})
