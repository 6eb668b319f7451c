import { test as playwrightTest } from '@playwright/test'
import { cpuSecondsOf, recordCpu } from '../support/cpu.ts'
import { QUICK_LEDGER, type RunningProgram, runProgram } from './running-program.ts'
import { runSeeded, type SeededProgram } from './seeded.ts'

interface SharedPrograms {
  /** a service for tests that count no records and leave it usable */
  shared: RunningProgram
  /** a service with the records of `npm run seed`, for tests that only read them */
  seeded: SeededProgram
}

/** The running services that the test files of a worker share. */
const sharedPrograms = new Set<RunningProgram>()

/** The CPU seconds that this worker has used, with its browser and services, except for the shared ones. */
function cpuSeconds(): number {
  return [...sharedPrograms].reduce((rest, { pid }) => rest - cpuSecondsOf(pid), cpuSecondsOf(process.pid))
}
let lastCpuSeconds = cpuSeconds()

async function share<Program extends RunningProgram>(
  start: Promise<Program>,
  use: (program: Program) => Promise<void>,
): Promise<void> {
  const program = await start
  sharedPrograms.add(program)
  await use(program)
  await program.stop()
  sharedPrograms.delete(program)
}

/**
 * Playwright's, with services that the files of a worker share. Every file must import this, because Playwright starts
 * another worker for tests with other fixtures.
 */
export const test = playwrightTest.extend<{ cpu: undefined }, SharedPrograms>({
  shared: [({ playwright: _ }, use) => share(runProgram(QUICK_LEDGER), use), { scope: 'worker' }],
  seeded: [({ browser }, use) => share(runSeeded(browser), use), { scope: 'worker' }],
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
