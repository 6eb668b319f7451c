import { existsSync, readFileSync } from 'node:fs'
import { cpuLogOf } from '../support/cpu.ts'
import type { Rule } from './sources.ts'

/** The CPU seconds of each test file of a whole run, and of the run. */
interface TestRun {
  files: [file: string, seconds: number][]
  total: number
}

/** The last whole run of a suite; undefined if there was none, or it has not finished. */
function readLastRun(suite: 'quick' | 'long'): TestRun | undefined {
  const log = cpuLogOf(suite)
  if (!existsSync(log)) return undefined
  const lines = readFileSync(log, 'utf8').trimEnd().split('\n')
  const rows = lines.map((line) => JSON.parse(line) as { file: string | null; seconds: number })
  const total = rows.find(({ file }) => file === null)?.seconds
  if (total === undefined) return undefined
  // A file that runs on two databases has two rows, and one of the browser has a row per test.
  const files = new Map<string, number>()
  for (const { file, seconds } of rows) if (file !== null) files.set(file, (files.get(file) ?? 0) + seconds)
  return { files: [...files].sort(([, one], [, other]) => other - one), total }
}

const quick = readLastRun('quick')
const long = readLastRun('long')

/** The share of a run's CPU that one file may take. A slower one makes everybody wait: give it less to do. */
const LARGEST_SHARE = 0.04

const describe = ([file, seconds]: [string, number]) => `${seconds.toFixed(1).padStart(6)} s  ${file}`

function describeRun(command: string, run: TestRun | undefined): string {
  if (!run) return `There was no whole run of ${command}.`
  return `CPU of the test files in the last run of ${command} (${run.total.toFixed(0)} s):\n${run.files.map(describe).join('\n')}`
}

export const describeCpu = () => `${describeRun('npm test', quick)}\n\n${describeRun('npm run test:long', long)}\n`

const tooLarge = (run: TestRun | undefined, total: number) =>
  run?.files.filter(([, seconds]) => seconds > LARGEST_SHARE * total).map(describe) ?? []

export const CPU_RULES: Rule[] = [
  {
    name: 'a test file takes at most 4 % of the CPU of npm test',
    violations: () => tooLarge(quick, quick?.total ?? 0),
  },
  {
    name: 'a long test file takes at most 4 % of the CPU of both commands',
    violations: () => tooLarge(long, (quick?.total ?? 0) + (long?.total ?? 0)),
  },
]
