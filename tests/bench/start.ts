import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildIfStale, nextProgram } from '#lib/cli/build.ts'
import { MEMORY } from '#lib/cli/process/serve.ts'
import { freePort } from '../support/port.ts'
import type { Figure } from './directory.ts'
import { buildFloor, FLOOR_DIRECTORY } from './floor.ts'
import { residentMbOf } from './load.ts'

const ROUNDS = 3
/** By then a process has prepared its channels, which takes proofs, or has nothing to do. */
const SETTLED_AFTER_MS = 60_000

interface Start {
  child: ChildProcess
  /** milliseconds to the first response */
  ms: number
}

/**
 * The embedded default: how long a process takes until its first response, in comparison with a minimal application on
 * the same Next.
 */
export async function measureStart(): Promise<Figure[]> {
  buildIfStale()
  await buildFloor()
  const times: Record<'bare' | 'first' | 'second', number[]> = { bare: [], first: [], second: [] }
  let memory = Number.NaN
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
    times.second.push(await timeStart([], '/api/health', variables))
    if (round === ROUNDS) memory = await measureIdle(variables)
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

/** Memory in MB of a process that makes no proof, since an earlier one has prepared its channels. */
async function measureIdle(variables: Record<string, string>): Promise<number> {
  let memory = Number.NaN
  for (let starts = 0; starts < 2; starts += 1) {
    const { child } = await start([], '/api/health', variables)
    await new Promise((resolve) => setTimeout(resolve, SETTLED_AFTER_MS))
    memory = residentMbOf(child.pid ?? 0)
    await end(child)
  }
  return memory
}

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
    env: { ...process.env, NEXT_TELEMETRY_DISABLED: '1', PORT: String(port), ...MEMORY, ...variables },
  })
  for (;;) {
    if (child.exitCode !== null) throw new Error(`the service ended with code ${child.exitCode}`)
    const answer = await fetch(`http://127.0.0.1:${port}${path}`).catch(() => undefined)
    const status = path === '/' ? 404 : 200
    if (answer && answer.status !== status) throw new Error(`${path} is answered with ${answer.status}`)
    if (answer) return { child, ms: performance.now() - began }
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

async function end(child: ChildProcess): Promise<void> {
  const gone = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  await gone
}
