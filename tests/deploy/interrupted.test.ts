import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { CHILD_VARIABLES } from '../support/child-variables.ts'

/** The running processes with this variable in their environment, by their command lines. */
function processesWith(variable: string): string[] {
  return readdirSync('/proc').flatMap((pid) => {
    try {
      const isStarted = readFileSync(`/proc/${pid}/environ`, 'utf8').includes(variable)
      return isStarted ? [readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')] : []
    } catch {
      return []
    }
  })
}

function startRun() {
  const mark = `TEST_OF_SIGNALS=${crypto.randomUUID()}`
  const [name = '', value] = mark.split('=')
  const run = spawn(process.execPath, ['tests/run.ts', 'tests/directory/roles.pg.test.ts'], {
    stdio: 'ignore',
    env: { ...CHILD_VARIABLES, [name]: value } as unknown as NodeJS.ProcessEnv,
  })
  return { mark, run }
}

// Other systems have no /proc.
test.skipIf(process.platform !== 'linux').each(['SIGINT', 'SIGTERM'] as const)(
  'npm test leaves no process behind after %s',
  async (signal) => {
    const { mark, run } = startRun()
    const isServing = () => processesWith(mark).some((command) => /\bpostgres\b.* -D /.test(command))
    await vi.waitUntil(isServing, { timeout: 300_000, interval: 50 })
    run.kill(signal)
    const [code] = await once(run, 'exit')
    expect(code).toBe(1)
    expect(processesWith(mark)).toEqual([])
  },
)

// It may not have begun to listen for signals, or be about to start the runners.
test.skipIf(process.platform !== 'linux').each([200, 500, 1_000])(
  'npm test leaves no process behind after a signal in its first %i ms',
  async (milliseconds) => {
    const { mark, run } = startRun()
    const exit = once(run, 'exit')
    await setTimeout(milliseconds)
    run.kill('SIGINT')
    await exit
    // A process that has just been forked would show itself a moment later.
    await setTimeout(500)
    expect(processesWith(mark)).toEqual([])
  },
)
