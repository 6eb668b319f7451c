import { ingest, ROUND_MS } from '#lib/archive/ingest.ts'
import { purgeUsedChallenges } from '#lib/auth/sep10/claim.ts'
import { analyzeGrownTables } from '#lib/db/statistics.ts'
import { sweepRegistrations } from '#lib/directory/contractors/activation.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { resumeItems } from '#lib/relay/chores.ts'
import { adoptTransfers } from '#lib/transfers/refresh.ts'
import { purgeRefusals } from '#lib/transfers/refusals.ts'
import { eraseOldEnvelopes } from '#lib/transfers/rows.ts'
import { directoryContext, type Service } from './services.ts'

/**
 * Periodic work that no request waits for. Each chore resolves to how much it did. Every process runs all of them; on
 * serverless hosts, where no process lasts, the cron route does. Chores may run concurrently in several processes.
 */
const CHORES = {
  /** Tracks the transfers that a process left open when it exited or when the database's response was lost. */
  transfers: async ({ tracker, database }) => await adoptTransfers(await database(), tracker),
  envelopes: async ({ database, now }) => await eraseOldEnvelopes(await database(), now()),
  contractors: async (service) => await sweepRegistrations(await directoryContext(service)),
  items: async ({ database, batch, now }) => (batch ? await resumeItems({ database, queue: batch.queue, now }) : 0),
  challenges: async ({ database, now }) => await purgeUsedChallenges(await database(), now()),
  refusals: async ({ database, now }) => await purgeRefusals(await database(), now()),
  tables: async ({ database }) => (await analyzeGrownTables(await database())).length,
  archive: async ({ archive }) => (archive ? await ingest(archive, { maxMs: ROUND_MS }) : 0),
} satisfies Record<string, (service: Service) => Promise<number>>

type Chore = keyof typeof CHORES
const NAMES = Object.keys(CHORES) as Chore[]

/** How many records each chore processed; null if it failed. */
export type ChoreReport = Record<Chore, number | null>

/** Runs the chores one after another. A failed chore is logged, and the others still run. */
export async function runChores(service: Service): Promise<ChoreReport> {
  const report: Partial<ChoreReport> = {}
  for (const name of NAMES) report[name] = await runChore(service, name)
  return report as ChoreReport
}

async function runChore(service: Service, name: Chore): Promise<number | null> {
  return await CHORES[name](service).catch((error: unknown) => {
    log('error', 'chore', { chore: name, failure: describeFailure(error) })
    return null
  })
}

export const CHORES_EVERY_MS = 30_000

/**
 * Runs the chores now and then periodically. Calling the returned function stops further chores; it resolves when the
 * current chore is done, so that a process that exits does not wait for a whole round.
 */
export function startMaintenance(service: Service, everyMs = CHORES_EVERY_MS): () => Promise<void> {
  let hasEnded = false
  let running: Promise<void> | undefined
  const runRound = async () => {
    for (const name of NAMES) {
      if (hasEnded) return
      await runChore(service, name)
    }
  }
  const run = () => {
    running ??= runRound().finally(() => {
      running = undefined
    })
  }
  run()
  const timer = setInterval(run, everyMs)
  timer.unref()
  return async () => {
    hasEnded = true
    clearInterval(timer)
    await running
  }
}
