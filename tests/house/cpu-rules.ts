import { existsSync, readFileSync } from 'node:fs'
import { CPU_LOG } from '../support/cpu.ts'
import type { Rule } from './sources.ts'

/** The CPU seconds of each test file of the last whole run, and of the run; undefined without a finished run. */
function readLastRun(): { files: [file: string, seconds: number][]; total: number } | undefined {
  if (!existsSync(CPU_LOG)) return undefined
  const lines = readFileSync(CPU_LOG, 'utf8').trimEnd().split('\n')
  const rows = lines.map((line) => JSON.parse(line) as { file: string | null; seconds: number })
  const total = rows.find(({ file }) => file === null)?.seconds
  if (total === undefined) return undefined
  // A file that runs on two databases has two rows, and one of the browser has a row per test.
  const files = new Map<string, number>()
  for (const { file, seconds } of rows) if (file !== null) files.set(file, (files.get(file) ?? 0) + seconds)
  return { files: [...files].sort(([, one], [, other]) => other - one), total }
}

const lastRun = readLastRun()

/** The share of a run's CPU that one file may take. A slower one makes everybody wait: give it less to do. */
const LARGEST_SHARE = 0.04

const describe = ([file, seconds]: [string, number]) => `${seconds.toFixed(1).padStart(6)} s  ${file}`

export function describeCpu(): string {
  if (!lastRun) return 'There was no whole run of the tests.'
  const { files, total } = lastRun
  return `CPU of the test files in the last run (${total.toFixed(0)} s):\n${files.map(describe).join('\n')}`
}

export const CPU_RULES: Rule[] = [
  {
    name: 'a test file takes at most 4 % of the CPU of the last run',
    violations: () =>
      lastRun?.files.filter(([, seconds]) => seconds > LARGEST_SHARE * lastRun.total).map(describe) ?? [],
  },
]
