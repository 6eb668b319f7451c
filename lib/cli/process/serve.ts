import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { buildIfStale } from '../build.ts'

/** A running service, and the function that stops it if it was started here. */
export interface Serving {
  pid: number
  /** SIGTERM: requests are drained first */
  stop(): Promise<void>
  /** SIGKILL */
  kill(): Promise<void>
}

const START_DEADLINE_MS = 300_000

/**
 * Variables that `npm start` and the image also set. Compiling PGlite briefly takes half a gigabyte in V8. Without
 * these variables, glibc would never release 80 MB of it.
 */
export const MEMORY = { MALLOC_ARENA_MAX: '2', MALLOC_TRIM_THRESHOLD_: '131072' }

/** Whether a payroll service responds at `base`. */
export async function answers(base: string): Promise<boolean> {
  try {
    const response = await fetch(`${base}/api/health`, { signal: AbortSignal.timeout(5_000) })
    return response.ok
  } catch {
    return false
  }
}

/**
 * Starts the service as `npm start` does, with `variables` added to the environment of this process, and resolves once
 * it responds at `base`. Its output goes to `output`: a file descriptor, a keyword, or a function called with each
 * line.
 */
export async function startServing(
  base: string,
  variables: Record<string, string> = {},
  output: 'inherit' | 'ignore' | number | ((line: string) => void) = 'ignore',
): Promise<Serving> {
  buildIfStale()
  const child = spawn(process.execPath, [fileURLToPath(import.meta.resolve('../start.ts'))], {
    stdio: ['ignore', typeof output === 'function' ? 'pipe' : output, 'inherit'],
    env: { ...process.env, NEXT_TELEMETRY_DISABLED: '1', ...MEMORY, ...variables },
  })
  if (typeof output === 'function' && child.stdout) createInterface(child.stdout).on('line', output)
  const deadline = Date.now() + START_DEADLINE_MS
  while (!(await answers(base))) {
    if (child.exitCode !== null) throw new Error(`the service exited with code ${child.exitCode}`)
    if (Date.now() > deadline) {
      child.kill('SIGKILL')
      throw new Error(`the service does not respond at ${base}`)
    }
    await setTimeout(100)
  }
  return { pid: child.pid ?? 0, stop: () => end(child, 'SIGTERM'), kill: () => end(child, 'SIGKILL') }
}

/** Ends a program; resolves once it has exited. */
export function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve()
    child.once('exit', () => resolve())
    child.kill(signal)
  })
}
