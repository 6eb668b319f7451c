import { appendFileSync, readdirSync, readFileSync } from 'node:fs'
import { relative } from 'node:path'

/** The CPU seconds of each test file of the last whole run of `npm test` or `npm run test:long`, a line of JSON each. */
export const cpuLogOf = (suite: 'quick' | 'long') => `node_modules/.cache/tests/cpu-${suite}.ndjson`

/** Records that `file` has used so much CPU, if this is a whole run. */
export function recordCpu(file: string, seconds: number): void {
  const log = process.env.TEST_CPU_LOG
  if (log) appendFileSync(log, `${JSON.stringify({ file: relative('.', file), seconds })}\n`)
}

/** Completes a log with the CPU of the whole run. */
export function finishCpuLog(log: string, seconds: number): void {
  appendFileSync(log, `${JSON.stringify({ file: null, seconds })}\n`)
}

/** Linux counts CPU time in hundredths of a second. */
const TICKS_PER_SECOND = 100

/** The CPU seconds that a process and its descendants, the ended ones included, have used. */
export function cpuSecondsOf(pid: number): number {
  let ticks: number
  try {
    ticks = sumTicks(pid, readProcesses())
  } catch {
    // There is no /proc on other systems.
    const { user, system } = process.cpuUsage()
    return (user + system) / 1e6
  }
  return ticks / TICKS_PER_SECOND
}

interface ProcessTimes {
  parent: number
  /** of the process itself, and of those of its children that it has waited for */
  ticks: number
}

function readProcesses(): Map<number, ProcessTimes> {
  const processes = new Map<number, ProcessTimes>()
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8')
      // The second field is the program's name in parentheses, which may contain spaces.
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      const times = fields.slice(11, 15).map(Number)
      processes.set(Number(name), { parent: Number(fields[1]), ticks: times.reduce((sum, time) => sum + time, 0) })
    } catch {
      // It has ended.
    }
  }
  return processes
}

function sumTicks(pid: number, processes: Map<number, ProcessTimes>): number {
  let sum = processes.get(pid)?.ticks ?? 0
  for (const [child, { parent }] of processes) if (parent === pid) sum += sumTicks(child, processes)
  return sum
}
