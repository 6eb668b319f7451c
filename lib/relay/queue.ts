import { PGlite } from '@electric-sql/pglite'
import { type SQL, sql } from 'drizzle-orm'
import { fromDrizzle, PgBoss } from 'pg-boss'
import type { Database } from '#lib/db/connection.ts'
import { sqlRunner } from '#lib/db/sql-runner.ts'
import { describeFailure, log } from '#lib/observability/log.ts'

/** The way of jobs to the relays: pg-boss, in the database that everything else is in. One per process. */
export interface JobQueue {
  /** Makes the queue ready for use; needed before the first `send`. Throws while the database is out of reach. */
  open(): Promise<void>
  /** Queues a job by its id, in the SQL transaction that writes it down, unless it is queued already. */
  send(tx: Database, job: string): Promise<void>
  /** Calls `wake` whenever jobs have been queued, of which some relay is told once. */
  work(wake: () => void): Promise<void>
  close(): Promise<void>
}

const QUEUE = 'disbursement'
/** pg-boss looks no more often. */
const POLL_SECONDS = 0.5
const AT_ONCE = 50

/** @param database opens the database anew at each use, so that an outage is only waited through */
export function openQueue(database: () => Promise<Database>): JobQueue {
  let opening: Promise<PgBoss> | undefined

  function open(): Promise<PgBoss> {
    opening ??= start(database).catch((error: unknown) => {
      opening = undefined
      throw error
    })
    return opening
  }

  return {
    open: async () => void (await open()),
    send: async (tx, job) => {
      const boss = await open()
      // A message is a hint that there is work; what work there is, the rows say.
      await boss.send(QUEUE, { job }, { db: within(tx), singletonKey: job })
    },
    work: async (wake) => {
      const boss = await open()
      const options = { batchSize: AT_ONCE, pollingIntervalSeconds: POLL_SECONDS }
      await boss.work(QUEUE, options, async () => wake())
    },
    close: async () => {
      const boss = await opening?.catch(() => undefined)
      await boss?.stop({ graceful: false })
    },
  }
}

/** A transaction of ours as pg-boss takes it. Every driver answers with `rows`. */
function within(tx: Database) {
  return fromDrizzle({ execute: async (query) => (await tx.execute(query as SQL)) as { rows: unknown[] } }, sql)
}

async function start(database: () => Promise<Database>): Promise<PgBoss> {
  const db = await database()
  const embedded = '$client' in db && db.$client instanceof PGlite
  const boss = new PgBoss({
    // Taken from the store at each statement: a pool that was replaced is not held on to.
    db: { executeSql: async (text, values) => await sqlRunner(await database())(text, values) },
    backend: embedded ? 'pglite' : 'postgres',
    schedule: false,
    reindex: false,
  })
  boss.on('error', (error) => log('error', 'queue', { failure: describeFailure(error) }))
  await boss.start()
  await boss.createQueue(QUEUE, { policy: 'short', retryLimit: 10, retryDelay: 1, expireInSeconds: 60 })
  // Reads the queue into pg-boss's cache. A `send` in a transaction that had to do so would wait for itself on PGlite.
  await boss.findJobs(QUEUE, { key: 'none' })
  return boss
}
