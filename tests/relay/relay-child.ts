import { fork } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { CHILD_VARIABLES } from '../support/child-variables.ts'

/** A relay in a separate process. */
interface RelayChild {
  /** the JSON lines logged so far */
  log: Record<string, unknown>[]
  exited: Promise<unknown>
  /** Sends SIGKILL; resolves after the process has exited. */
  kill(): Promise<void>
}

/** Starts a relay whose configuration is `variables` alone, and resolves once it is at work. */
export async function startChild(variables: Record<string, string>): Promise<RelayChild> {
  const child = fork(new URL('relay-process.ts', import.meta.url), {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    env: { ...CHILD_VARIABLES, ...variables } as unknown as NodeJS.ProcessEnv,
    execArgv:
      'CLOCK_SHIFT_MS' in variables ? ['--import', new URL('../support/shifted-clock.ts', import.meta.url).href] : [],
  })
  const log: Record<string, unknown>[] = []
  for (const output of [child.stdout, child.stderr]) {
    if (output)
      createInterface(output).on('line', (line) =>
        line.startsWith('{') ? log.push(JSON.parse(line)) : console.error(line),
      )
  }
  const exited = once(child, 'exit')
  const [said] = await Promise.race([once(child, 'message'), exited])
  if (said !== 'at work') throw new Error(`the relay ended with ${said}`)
  return {
    log,
    exited,
    kill: async () => {
      child.kill('SIGKILL')
      await exited
    },
  }
}
