import { closeSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Figure } from './directory.ts'
import { compare, startPollingService } from './polling.ts'

const SILENT_PORT = 3922

/** The request log, written to a file, for a service whose console writes nothing. */
export async function measureRequestLog(databaseUrl: string): Promise<Figure> {
  const file = join(tmpdir(), `payroll-bench-${process.pid}.log`)
  const output = openSync(file, 'w')
  const logging = await startPollingService(databaseUrl, { output })
  const mute = { NODE_OPTIONS: '--import=data:text/javascript,console.log=()=>undefined' }
  const silent = await startPollingService(databaseUrl, { port: SILENT_PORT, variables: mute })
  try {
    const target = ({ base, pid, sessions }: typeof logging) => ({ url: `${base}/api/me`, pid, sessions })
    const { rate, otherRate, cost, otherCost } = await compare(target(logging), target(silent))
    const found = `${(rate / otherRate).toFixed(2)} of the rate; CPU ${cost.toFixed(3)} to ${otherCost.toFixed(3)} ms`
    return { name: 'GET /me with the request log, and without', found, goal: 'nothing measurable' }
  } finally {
    await logging.close()
    await silent.close()
    closeSync(output)
    rmSync(file)
  }
}
