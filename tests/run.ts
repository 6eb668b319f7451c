import { type ChildProcess, spawn } from 'node:child_process'
import { globSync, mkdirSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildIfStale } from '#lib/cli/build.ts'
import { makeTemplate } from '#lib/cli/database-template.ts'
import { runCommand } from '#lib/cli/process/command.ts'
import { cpuLogOf, cpuSecondsOf, finishCpuLog } from './support/cpu.ts'

const USAGE = `npm test [-- [--name PATTERN] [PATH …]]
npm run test:long [-- [--name PATTERN] [PATH …]]

npm test checks everything once: every operation, code and move, the pages in Chromium (installed if it is missing), and
each kind of fault. npm run test:long has the rest, in files named *.long.*: the whole matrices of faults and forgeries,
PGlite beside PostgreSQL, circuits and real proofs, deployments.

  PATH             files or folders below tests: npm test -- tests/directory; a *.long.* or *.spec.ts file runs with both
  --name PATTERN   only the tests whose names match this regular expression
  --help           this text`

type Suite = 'quick' | 'long' | 'all'

/** The test runners, with the paths that each knows. */
const RUNNERS = {
  vitest: {
    config: 'tests/vitest.config.ts',
    program: 'vitest/vitest.mjs',
    args: ['run'],
    name: '-t',
    passing: '--passWithNoTests',
  },
  playwright: {
    config: 'tests/playwright.config.ts',
    program: '@playwright/test/cli.js',
    args: ['test'],
    name: '-g',
    passing: '--pass-with-no-tests',
  },
}

/** Every process that a test starts loads the same modules. */
const COMPILE_CACHE = fileURLToPath(new URL('../node_modules/.cache/node', import.meta.url))

const isOfBrowser = (path: string) => /^(\.\/)?tests\/browser\b|\.spec\.ts$/.test(path)
const isOfBoth = (path: string) => /^(\.\/)?tests\/?$/.test(path)

/** A path of a file that `npm run test:long` has, or has a part of. */
const isLongFile = (path: string) => path.includes('.long.') || path.endsWith('.spec.ts')

/** The test runners of this process. Each leads a process group, with everything that it starts. */
const running = new Set<ChildProcess>()
let isEnding = false

/** Runs a program; resolves to whether it succeeded. Its output appears at once, or when `shown` resolves. */
async function runProgram(
  args: string[],
  variables: Record<string, string>,
  shown?: Promise<unknown>,
): Promise<boolean> {
  if (isEnding) return false
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', shown ? 'pipe' : 'inherit', shown ? 'pipe' : 'inherit'],
    detached: true,
    env: { ...process.env, NEXT_TELEMETRY_DISABLED: '1', NODE_COMPILE_CACHE: COMPILE_CACHE, ...variables },
  })
  running.add(child)
  const held: Buffer[] = []
  let show = (part: Buffer): unknown => held.push(part)
  void shown?.then(() => {
    show = (part) => process.stdout.write(part)
    for (const part of held.splice(0)) show(part)
  })
  for (const output of [child.stdout, child.stderr]) output?.on('data', (part: Buffer) => show(part))
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  running.delete(child)
  await shown
  return code === 0
}

const GRACE_MS = 3_000

/** Ends the runners with all services, databases and browsers that they have started: at once on the second signal. */
function endOnSignals(): void {
  const groups = new Set<number>()
  const signalAll = (signal: NodeJS.Signals) => {
    for (const { pid } of running) if (pid !== undefined) groups.add(pid)
    for (const group of groups) signalGroup(group, signal)
  }
  const kill = () => {
    signalAll('SIGKILL')
    process.exit(1)
  }
  const stop = () => {
    if (isEnding) kill()
    isEnding = true
    signalAll('SIGTERM')
    setTimeout(kill, GRACE_MS)
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stop)
}

function signalGroup(group: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-group, signal)
  } catch {
    // Every process of the group has ended.
  }
}

interface Given {
  isLong: boolean
  name: string | undefined
  paths: string[]
}

async function runTests({ isLong, name, paths }: Given): Promise<boolean> {
  const suite: Suite = isLong ? 'long' : paths.some(isLongFile) ? 'all' : 'quick'
  const log = cpuLogOf(isLong ? 'long' : 'quick')
  const isWhole = paths.length === 0 && name === undefined
  // Single files that need the build make it themselves.
  if (isWhole) buildIfStale()
  // Services with an embedded database start from this copy.
  await makeTemplate()
  if (isWhole) {
    mkdirSync(dirname(log), { recursive: true })
    rmSync(log, { force: true })
  }
  const variables = { TEST_SUITE: suite, ...(isWhole && { TEST_CPU_LOG: log }) }
  const start = (runner: keyof typeof RUNNERS, shown?: Promise<unknown>): Promise<boolean> => {
    const { config, program, args, name: option, passing } = RUNNERS[runner]
    const own = paths.filter((path) => isOfBoth(path) || isOfBrowser(path) === (runner === 'playwright'))
    if (paths.length > 0 && own.length === 0) return Promise.resolve(true)
    // Tests with this name may be the other runner's.
    const named = name === undefined ? [] : [option, name, passing]
    return runProgram([`node_modules/${program}`, ...args, '--config', config, ...named, ...own], variables, shown)
  }
  // Both at once use two cores better: most tests wait for ledgers or pages.
  const units = start('vitest')
  const pages = start('playwright', units)
  const succeeded = (await Promise.all([units, pages])).every(Boolean)
  if (isWhole) finishCpuLog(log, cpuSecondsOf(process.pid))
  return succeeded
}

/** What `npm test` leaves to `npm run test:long`. */
function describeRest(): string {
  const files = globSync('tests/*/**/*.long.*')
  const folders = Map.groupBy(files, (file) => file.split('/').at(-2) ?? '')
  const counts = [...folders].sort().map(([folder, { length }]) => `${folder} ${length}`)
  const rest = 'the guides, every page at every size, and PGlite beside PostgreSQL'
  return `npm run test:long has ${files.length} more files (${counts.join(', ')}), ${rest}.`
}

await runCommand({
  usage: USAGE,
  options: { long: { type: 'boolean', default: false }, name: { type: 'string' } },
  run: async ({ long: isLong, name }, paths) => {
    endOnSignals()
    const succeeded = await runTests({ isLong, name, paths })
    const [minutes, cpu] = [performance.now(), cpuSecondsOf(process.pid) * 1000].map((ms) => (ms / 60_000).toFixed(1))
    console.log(
      `\n${succeeded ? 'All tests passed' : 'Tests failed'} after ${minutes} minutes, with ${cpu} minutes of CPU.`,
    )
    if (!isLong && paths.length === 0) console.log(describeRest())
    process.exitCode = succeeded ? 0 : 1
  },
})
