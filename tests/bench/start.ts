import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildIfStale, nextProgram } from '#lib/cli/build.ts'
import { freePort } from '../support/port.ts'
import type { Figure } from './directory.ts'
import { buildFloor, FLOOR_DIRECTORY } from './floor.ts'
import { residentMbOf } from './load.ts'

const ROUNDS = 3
/** After this long the process has made its channels fit, and has nothing to do. */
const IDLE_AFTER_MS = 60_000

interface Start {
  child: ChildProcess
  /** milliseconds to the first answer */
  ms: number
}

/** The embedded default: how long a process takes to its first answer, beside a bare application of the same Next. */
export async function measureStart(): Promise<Figure[]> {
  buildIfStale()
  await buildFloor()
  const times: Record<'bare' | 'first' | 'second', number[]> = { bare: [], first: [], second: [] }
  let memory = 0
  for (let round = 1; round <= ROUNDS; round += 1) {
    const directory = await mkdtemp(join(tmpdir(), 'payroll-bench-start-'))
    const variables = {
      DATA_DIR: directory,
      DEVNET_PORT: String(await freePort()),
      RELAY_PORT: String(await freePort()),
      DEVNET_PROOFS: 'real',
    }
    times.bare.push(await timeStart([FLOOR_DIRECTORY], '/', {}))
    times.first.push(await timeStart([], '/api/health', variables))
    const second = await start([], '/api/health', variables)
    times.second.push(second.ms)
    if (round === ROUNDS) {
      await new Promise((resolve) => setTimeout(resolve, IDLE_AFTER_MS))
      memory = residentMbOf(second.child.pid ?? 0)
    }
    await end(second.child)
    await rm(directory, { recursive: true, force: true })
  }
  const [bare, first, second] = [times.bare, times.first, times.second].map(median) as [number, number, number]
  const told = (ms: number) => `${(ms / 1000).toFixed(1)} s, ${(ms / bare).toFixed(1)} times a bare Next`
  return [
    { name: 'first start, empty folder: first answer', found: told(first), goal: 'at most 6 s on 2 idle cores' },
    { name: 'second start: first answer', found: told(second), goal: 'at most 2.5 s on 2 idle cores' },
    { name: 'memory, idle, no proof made', found: `${memory.toFixed(0)} MB`, goal: 'at most 450 MB' },
  ]
}

const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

async function timeStart(args: string[], path: string, variables: Record<string, string>): Promise<number> {
  const { child, ms } = await start(args, path, variables)
  await end(child)
  return ms
}

async function start(args: string[], path: string, variables: Record<string, string>): Promise<Start> {
  const port = await freePort()
  const began = performance.now()
  const child = spawn(process.execPath, [nextProgram(), 'start', ...args, '-p', String(port)], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, NEXT_TELEMETRY_DISABLED: '1', PORT: String(port), ...variables },
  })
  for (;;) {
    if (child.exitCode !== null) throw new Error(`the service ended with code ${child.exitCode}`)
    const answer = await fetch(`http://127.0.0.1:${port}${path}`).catch(() => undefined)
    if (answer) return { child, ms: performance.now() - began }
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

async function end(child: ChildProcess): Promise<void> {
  const gone = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  await gone
}
