import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test as playwrightTest } from '@playwright/test'
import { cpuSecondsOf, recordCpu } from '../support/cpu.ts'
import { freePort } from '../support/port.ts'
import { startProgram } from '../support/program.ts'

/** The password of every service that the browser tests start. */
export const PASSWORD = 'a password for the tests'

/** For tests that send transactions: a ledger closes five times a second. */
export const QUICK_LEDGER = { DEVNET_CLOSE_MS: '200' }

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

/** The service that the tests of a worker share. */
let sharedProgram: RunningProgram | undefined

/** The CPU seconds that this worker has used, with its browser and services, except for the shared one. */
const cpuSeconds = () => cpuSecondsOf(process.pid) - (sharedProgram ? cpuSecondsOf(sharedProgram.pid) : 0)
let lastCpuSeconds = cpuSeconds()

/**
 * Playwright's, with a service for tests that count no records and leave it usable: the files that one worker runs
 * share it. Every file must import this, because Playwright starts another worker for tests with other fixtures.
 */
export const test = playwrightTest.extend<{ cpu: undefined }, { shared: RunningProgram }>({
  shared: [
    async ({ playwright: _ }, use) => {
      sharedProgram = await runProgram(QUICK_LEDGER)
      await use(sharedProgram)
      await sharedProgram.stop()
    },
    { scope: 'worker' },
  ],
  // Counts what came before a test, such as the services that its file starts, to the file of the test.
  cpu: [
    async ({ playwright: _ }, use, { file }) => {
      await use(undefined)
      const seconds = cpuSeconds()
      recordCpu(file, seconds - lastCpuSeconds)
      lastCpuSeconds = seconds
    },
    { auto: true },
  ],
})
