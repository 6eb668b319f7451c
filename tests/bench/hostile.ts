import { Worker } from 'node:worker_threads'
import { Keypair } from '@stellar/stellar-sdk'
import { ATTACKS, type Target } from './attacks.ts'
import { askOnce, type LoadReport, load, percentile, residentMbOf } from './load.ts'
import { startPollingService } from './polling.ts'

const SECONDS = 8
/** 99 of 100 responses to other clients must arrive within this time. */
const GOAL_MS = 500
/** Longer than the service waits for the rest of a request. */
const LET_GO_AFTER_MS = 45_000

/** One attack, in a separate thread, so that it doesn't slow down the measuring clients. */
function attackWith(name: string, target: Target): Worker {
  return new Worker(new URL('./attacks.ts', import.meta.url), { workerData: { name, target } })
}

const rest = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/**
 * Prints a table of how long other clients wait for a read, for a small body and for /health during each attack, by an
 * attacker with many addresses.
 * @param only the attacks whose name contains this
 */
export async function measureHostile(databaseUrl: string, only = ''): Promise<void> {
  const service = await startPollingService(databaseUrl, {
    variables: { TRUST_PROXY: '1', SPONSOR_SEED: Keypair.random().secret() },
  })
  const { base, session, seed, otherSessions, batch, largeBatch } = service
  const row = (cells: string[]) => console.log(cells.map((cell, index) => cell.padEnd(index ? 18 : 42)).join(''))
  const times = ({ times: all }: LoadReport) =>
    `${percentile(all, 0.5).toFixed(0)}, ${percentile(all, 0.99).toFixed(0)} ms`
  try {
    // The first request of a user records it, which takes longer.
    for (const other of otherSessions) await askOnce(`${base}/api/me`, { sessions: [other] })
    row(['with this running', '/me p50, p99', 'PATCH /me', '/health', 'answers', 'memory', `p99 < ${GOAL_MS} ms`])
    for (const { name } of ATTACKS.filter((attack) => attack.name.includes(only))) {
      const attack = attackWith(name, { base, session, seed, batch, largeBatch })
      await rest(1_000)
      const others = { sessions: otherSessions }
      const patch = {
        ...others,
        method: 'PATCH',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ orgName: 'Other' }),
      }
      const [me, small, health] = await Promise.all([
        load(`${base}/api/me`, others, { connections: 2, seconds: SECONDS }),
        load(`${base}/api/me`, patch, { connections: 2, seconds: SECONDS }),
        load(`${base}/api/health`, {}, { connections: 2, seconds: SECONDS }),
      ])
      const all = [me, small, health]
      const sum = (values: number[]) => values.reduce((total, value) => total + value, 0)
      const bad = sum(all.map(({ others }) => others))
      const answers = `${sum(all.map((each) => each.answers))}, ${bad} bad`
      const isGood = bad === 0 && all.every((each) => percentile(each.times, 0.99) < GOAL_MS)
      const memory = `${residentMbOf(service.pid).toFixed(0)} MB`
      row([name, ...all.map(times), answers, memory, isGood ? 'passed' : 'FAILED'])
      if (name.includes('half-sent')) {
        // The attacker keeps its connections open: the service must close them.
        await rest(LET_GO_AFTER_MS)
        row(['  the same, 45 s later', '', '', '', '', `${residentMbOf(service.pid).toFixed(0)} MB`])
      }
      await attack.terminate()
    }
  } finally {
    await service.close()
  }
}
