import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../support/port.ts'
import { startProgram } from '../support/program.ts'

/** The password of every service that the browser tests start. */
export const PASSWORD = 'a password for the tests'

/** For tests that send transactions: a ledger closes five times a second. Its headers are of the next protocol. */
export const QUICK_LEDGER = { DEVNET_CLOSE_MS: '200', DEVNET_PROTOCOL: '30' }

/** The built service with embedded defaults, on free ports and in a temporary folder. */
export interface RunningProgram {
  pid: number
  base: string
  deploymentUrl: string
  stop(): Promise<void>
}

/**
 * @param variables in addition to ports, folder and password
 * @param port a free one by default
 */
export async function runProgram(variables: Record<string, string> = {}, port?: number): Promise<RunningProgram> {
  const [devnetPort, relayPort] = [await freePort(), await freePort()]
  port ??= await freePort()
  const directory = mkdtempSync(join(tmpdir(), 'payroll-browser-'))
  const base = `http://localhost:${port}`
  const program = await startProgram(base, {
    PORT: String(port),
    DEVNET_PORT: String(devnetPort),
    RELAY_PORT: String(relayPort),
    DATA_DIR: directory,
    PUBLIC_URL: base,
    OPERATOR_PASSWORD: PASSWORD,
    DEVNET_PROOFS: 'stand-in',
    ...variables,
  })
  return {
    pid: program.pid,
    base,
    deploymentUrl: `http://localhost:${devnetPort}/deployment.json`,
    stop: async () => {
      await program.kill()
      rmSync(directory, { recursive: true })
    },
  }
}
