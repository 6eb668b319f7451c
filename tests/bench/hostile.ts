import { Worker } from 'node:worker_threads'
import { ATTACKS, type Target } from './attacks.ts'
import { type LoadReport, load, percentile, residentMbOf } from './load.ts'
import { startPollingService } from './polling.ts'

const SECONDS = 8
/** Longer than the service waits for the rest of a request. */
const LET_GO_AFTER_MS = 45_000

/** One attack, in a thread of its own, so that it does not slow those who measure. */
function attackWith(name: string, target: Target): Worker {
  return new Worker(new URL('./attacks.ts', import.meta.url), { workerData: { name, target } })
}

const rest = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/**
 * What others wait for /me and /health while one client attacks: a table.
 * @param only the attacks whose name has this in it
 */
export async function measureHostile(databaseUrl: string, only = ''): Promise<void> {
  const service = await startPollingService(databaseUrl)
  const { base, session, batch } = service
  const row = (cells: string[]) => console.log(cells.map((cell, index) => cell.padEnd(index ? 18 : 42)).join(''))
  const times = ({ times: all }: LoadReport) =>
    `${percentile(all, 0.5).toFixed(0)}, ${percentile(all, 0.99).toFixed(0)} ms`
  try {
    row(['with this running', '/me p50, p99', '/health p50, p99', 'answers', 'memory'])
    for (const { name } of ATTACKS.filter((attack) => attack.name.includes(only))) {
      const attack = attackWith(name, { base, session, batch })
      await rest(1_000)
      const bearer = { headers: { Authorization: `Bearer ${session}` } }
      const [me, health] = await Promise.all([
        load(`${base}/api/me`, bearer, { connections: 2, seconds: SECONDS }),
        load(`${base}/api/health`, {}, { connections: 2, seconds: SECONDS }),
      ])
      const answers = `${me.answers + health.answers}, ${me.others + health.others} bad`
      row([name, times(me), times(health), answers, `${residentMbOf(service.pid).toFixed(0)} MB`])
      if (name.includes('half-sent')) {
        // The attacker keeps its connections: it is the service that must let go of them.
        await rest(LET_GO_AFTER_MS)
        row(['  the same, 45 s later', '', '', '', `${residentMbOf(service.pid).toFixed(0)} MB`])
      }
      await attack.terminate()
    }
  } finally {
    await service.close()
  }
}
