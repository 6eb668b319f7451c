import { eq, sql } from 'drizzle-orm'
import { chores } from '#drizzle/schema/chores.ts'
import { ingest, ROUND_MS } from '#lib/archive/ingest.ts'
import { hasClosed } from '#lib/archive/source.ts'
import { purgeUsedChallenges } from '#lib/auth/sep10/claim.ts'
import { moveWindows } from '#lib/dashboard/windows.ts'
import { purgeIdempotencyKeys } from '#lib/db/idempotency.ts'
import { analyzeGrownTables } from '#lib/db/statistics.ts'
import { sweepRegistrations } from '#lib/directory/contractors/activation.ts'
import { deliverDue } from '#lib/events/delivery.ts'
import { purgeDeliveries } from '#lib/events/delivery-list.ts'
import { mailPayees } from '#lib/events/payment-mail.ts'
import { publishEvents } from '#lib/events/publish.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { endOverdueLines } from '#lib/relay/chores.ts'
import { compareSequences } from '#lib/relay/sequence.ts'
import { adoptTransfers } from '#lib/transfers/adoption.ts'
import { eraseOldEnvelopes } from '#lib/transfers/erasure.ts'
import { purgeRefusals } from '#lib/transfers/refusals.ts'
import { directoryContext, type Service } from './services.ts'

/**
 * Periodic work that no request waits for. Each chore resolves to how much it did, and may run concurrently in several
 * processes. Every process that keeps running runs the chores; a SHARED one is run by only one of them in each interval.
 * On serverless hosts, where no process keeps running, the cron route runs them all.
 */
const CHORES = {
  /** Tracks the transfers that a process left open when it exited or when the database's response was lost. */
  transfers: async ({ tracker, database }) => await adoptTransfers(await database(), tracker),
  envelopes: async ({ database, now }) => await eraseOldEnvelopes(await database(), now()),
  contractors: sweepContractors,
  // Before the lines: none ends while a channel was not compared lately.
  channels: async ({ database, network, tracker: { readAccount }, settings: { token }, now }) =>
    token ? await compareSequences({ database, token, now, network, readAccount }) : 0,
  lines: async ({ database, network, settings: { token }, now }) =>
    token ? await endOverdueLines({ database, token, now, hasClosed: (ledger) => hasClosed(network, ledger) }) : 0,
  challenges: async ({ database, now }) => await purgeUsedChallenges(await database(), now()),
  keys: async ({ database }) => await purgeIdempotencyKeys(await database()),
  counts: async ({ database, now }) =>
    (await purgeRefusals(await database(), now())) + (await moveWindows(await database(), now())),
  /** Publishes what committed while no process was looking, as on serverless hosts. */
  events: async ({ database }) => await publishEvents(await database()),
  mails: async ({ database, settings: { mail, paymentMails } }) =>
    mail ? await mailPayees({ db: await database(), mail, ...paymentMails }) : 0,
  deliveries: async ({ database, now }) => await purgeDeliveries(await database(), now()),
  tables: async ({ database }) => (await analyzeGrownTables(await database())).length,
  archive: async ({ archive }) => (archive ? await ingest(archive, { maxMs: ROUND_MS }) : 0),
  /** Leases keep the processes apart. */
  webhooks: async ({ webhooks }) => await deliverDue(webhooks),
} satisfies Record<string, (service: Service) => Promise<number>>

export type Chore = keyof typeof CHORES
export const CHORE_NAMES = Object.keys(CHORES) as Chore[]

/**
 * Chores that one process runs on behalf of all. `transfers` isn't one of them: a process that starts takes over its
 * predecessor's transfers at once, and a process that claims the chore and exits before it tracks them would leave them
 * untracked for another interval.
 */
export const SHARED: ReadonlySet<Chore> = new Set([
  'envelopes',
  'contractors',
  'lines',
  'channels',
  'challenges',
  'keys',
  'counts',
  'mails',
  'deliveries',
  'archive',
])

/** Chores whose rounds are limited, and that resolve to 0 once nothing is left to do. */
const REPEATABLE: ReadonlySet<Chore> = new Set([
  'envelopes',
  'challenges',
  'keys',
  'counts',
  'events',
  'mails',
  'deliveries',
])

/** A round looks up some of the waiting contractors, and the next round continues after them. */
async function sweepContractors(service: Service): Promise<number> {
  const db = await service.database()
  const name = 'contractors' satisfies Chore
  const [row] = await db.select({ after: chores.after }).from(chores).where(eq(chores.name, name))
  const { activated, after } = await sweepRegistrations(await directoryContext(service), row?.after)
  // Where only the cron route runs chores, nothing claims them.
  await db
    .insert(chores)
    .values({ name, begunAt: service.now(), after })
    .onConflictDoUpdate({ target: chores.name, set: { after } })
  return activated
}

/** Claims a shared chore for this process. False if a process has begun it in this interval. */
async function claimChore({ database }: Service, name: string, everyMs: number): Promise<boolean> {
  const begunAt = sql`clock_timestamp()`
  // Timers are not exact, so slightly less than the interval is enough.
  const isDue = sql`${chores.begunAt} <= clock_timestamp() - make_interval(secs => ${(everyMs * 0.9) / 1000})`
  const claimed = await (await database())
    .insert(chores)
    .values({ name, begunAt })
    .onConflictDoUpdate({ target: chores.name, set: { begunAt }, setWhere: isDue })
    .returning({ name: chores.name })
  return claimed.length > 0
}

/** Makes a chore due immediately for every process, even if this one cannot run it. */
async function giveBackChore({ database }: Service, name: string): Promise<void> {
  await (await database())
    .update(chores)
    .set({ begunAt: new Date(0) })
    .where(eq(chores.name, name))
}

/** How many records each chore processed; null if it failed. */
export type ChoreReport = Record<Chore, number | null>

/** How long a scheduler's request repeats a chore that has more to do (ms): Vercel ends the request after a minute. */
const REPEAT_MS = 5_000

/**
 * Runs the chores one at a time. A failed chore is logged, and the others still run. A scheduler may call once a day, so a
 * chore that is limited per round is repeated until nothing is left.
 * @param repeatMs how long to repeat a chore
 */
export async function runChores(service: Service, repeatMs = REPEAT_MS): Promise<ChoreReport> {
  const report: Partial<ChoreReport> = {}
  for (const name of CHORE_NAMES) report[name] = await repeatChore(service, name, repeatMs)
  return report as ChoreReport
}

async function repeatChore(service: Service, name: Chore, repeatMs: number): Promise<number | null> {
  const began = performance.now()
  let total = 0
  for (;;) {
    const count = await runChore(service, name)
    if (count === null) return null
    total += count
    if (count === 0 || !REPEATABLE.has(name) || performance.now() - began >= repeatMs) return total
  }
}

/** Resolves to how much the chore did; null if it failed, which is logged. */
export async function runChore(service: Service, name: Chore): Promise<number | null> {
  try {
    return await CHORES[name](service)
  } catch (error) {
    logFailure(name, error)
    return null
  }
}

/** Runs a chore of this process, or a shared one if no process has begun it in this interval. */
async function runIfDue(service: Service, name: Chore, everyMs: number): Promise<void> {
  // A process without an archive must leave the round to a process that has one.
  if (name === 'archive' && !service.archive) return
  try {
    if (!SHARED.has(name)) await runChore(service, name)
    else if ((await claimChore(service, name, everyMs)) && (await runChore(service, name)) === null) {
      await giveBackChore(service, name)
    }
  } catch (error) {
    logFailure(name, error)
  }
}

const logFailure = (chore: Chore, error: unknown) => log('error', 'chore', { chore, failure: describeFailure(error) })

export const CHORES_EVERY_MS = 30_000

/** Left to the cron route: a process that keeps running delivers every second, and its chores do not wait for endpoints. */
const ON_SCHEDULE: Chore = 'webhooks'

/**
 * Runs the chores now and then periodically. Calling the returned function stops further chores; it resolves when the
 * current chore is done, so that a process that exits does not wait for a whole round.
 */
export function startMaintenance(service: Service, everyMs = CHORES_EVERY_MS): () => Promise<void> {
  let hasEnded = false
  let running: Promise<void> | undefined
  const runRound = async () => {
    for (const name of CHORE_NAMES) {
      if (hasEnded) return
      if (name === ON_SCHEDULE) continue
      await runIfDue(service, name, everyMs)
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
