import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { nextProgram } from '#lib/cli/build.ts'

/** A minimal application on the same Next: the lower bound for the cost of any application. */
export const FLOOR_DIRECTORY = fileURLToPath(new URL('floor', import.meta.url))

export async function buildFloor(): Promise<void> {
  const env = { ...process.env, NEXT_TELEMETRY_DISABLED: '1' }
  // Turbopack would use the instrumentation and the proxy of the parent folders, which belong to the service.
  const args = [nextProgram(), 'build', '--webpack', FLOOR_DIRECTORY]
  const build = spawn(process.execPath, args, { stdio: 'ignore', env })
  const code = await new Promise((resolve) => build.once('exit', resolve))
  if (code !== 0) throw new Error('the floor could not be built')
  if (existsSync(`${FLOOR_DIRECTORY}/.next/server/instrumentation.js`)) throw new Error('the floor is not bare')
}

/** Builds and starts it at `port`. */
export async function startFloor(port: number, variables: Record<string, string>): Promise<ChildProcess> {
  await buildFloor()
  const server = spawn(process.execPath, [nextProgram(), 'start', FLOOR_DIRECTORY, '-p', String(port)], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, NEXT_TELEMETRY_DISABLED: '1', ...variables },
  })
  const deadline = Date.now() + 60_000
  while (!(await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined))) {
    if (Date.now() > deadline) throw new Error('the floor does not answer')
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  return server
}
