import { PGlite } from '@electric-sql/pglite'
import { type SQL, sql } from 'drizzle-orm'
import { fromDrizzle, PgBoss } from 'pg-boss'
import type { PublicRelayKey } from '#lib/config/relay-key.ts'
import type { Database } from '#lib/db/connection.ts'
import { sqlRunner } from '#lib/db/sql-runner.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { keyIdOf } from '#lib/wallet/seal.ts'
import type { ItemId } from './item-row.ts'
import { openListener } from './wake-up.ts'

/** A queue message. It only names an item; the item's row holds the state. */
export interface ItemMessage extends ItemId {
  id: string
  /** aborted when the queue closes, or when another worker receives the message */
  signal: AbortSignal
}

/** Carries items to the relays of one key: a pg-boss queue in the service's database. */
export interface ItemQueue {
  /** thumbprint of the relays' key, which names the queue */
  relayKey: string
  /** Opens the queue, which a `send` in a transaction requires. Throws while the database is unreachable. */
  open(): Promise<void>
  /** Sends a message for each of these items that has none, in the caller's SQL transaction. */
  send(tx: Database, items: readonly (ItemId & { isHeld?: boolean })[]): Promise<void>
  /** Replaces a message by a later one, so that no worker holds it while it waits. */
  defer(tx: Database, message: ItemMessage, later: { seconds: number; isHeld: boolean }): Promise<void>
  /** Makes the deferred message of an item due now. */
  hurry(tx: Database, item: ItemId): Promise<void>
  /** Gives priority to an item's message, unless a worker has it. */
  prefer(tx: Database, item: ItemId): Promise<void>
  /** Fetches messages and hands them to `handle`, at most `concurrency` at a time, until `pause` or `close`. */
  work(concurrency: number, handle: (message: ItemMessage) => Promise<void>): Promise<void>
  /** Stops fetching. Messages that were fetched before are still handled. */
  pause(): Promise<void>
  /** Returns fetched messages to the queue, aborts their signals, and stops. */
  close(): Promise<void>
}

/**
 * The queue's policy `exclusive` keeps one message per item. A message never expires: its item decides when it is done.
 * A worker that sends no heartbeat for 10 s loses its message to the next worker.
 */
const OPTIONS = {
  retryLimit: 1_000_000,
  retryDelay: 1,
  retryBackoff: false,
  expireInSeconds: 86_400,
  heartbeatSeconds: 10,
  retentionSeconds: 14 * 86_400,
  deleteAfterSeconds: 3_600,
  notify: true,
}

/** The longest interval (s) between polls of a worker that receives no notifications. */
const POLL_WITHOUT_NOTIFY = 2

/** For a message whose item holds a channel: other items may be waiting for that channel. */
const HELD_PRIORITY = 1

/**
 * @param given.database called for each use, because an outage may replace the connection pool
 * @param given.intervals for a process that handles messages: the seconds between two polls for due messages, and
 *   between two checks for messages of dead workers
 */
export function openQueue(given: {
  database: () => Promise<Database>
  relayKey: string
  intervals?: { poll: number; supervise: number }
}): ItemQueue {
  const { database, relayKey, intervals } = given
  const name = `disbursement-${relayKey}`
  let opening: Promise<PgBoss> | undefined

  function open(): Promise<PgBoss> {
    opening ??= startBoss(database, name, intervals).catch((error: unknown) => {
      opening = undefined
      throw error
    })
    return opening
  }

  async function insert(
    tx: Database,
    items: readonly (ItemId & { isHeld?: boolean; seconds?: number })[],
  ): Promise<void> {
    if (items.length === 0) return
    const messages = items.map(({ job, position, isHeld, seconds }) => ({
      data: { job, position },
      singletonKey: keyOf({ job, position }),
      priority: isHeld ? HELD_PRIORITY : 0,
      ...(seconds !== undefined && { startAfter: seconds }),
    }))
    await (await open()).insert(name, messages, { db: within(tx) })
  }

  return {
    relayKey,
    open: async () => void (await open()),
    send: insert,
    defer: async (tx, { id, job, position }, later) => {
      await (await open()).complete(name, id, undefined, { db: within(tx) })
      await insert(tx, [{ job, position, ...later }])
    },
    hurry: async (tx, item) => {
      const options = { singletonKey: keyOf(item), startAfter: 0, db: within(tx) }
      await (await open()).update({ name, options })
    },
    prefer: async (tx, item) => {
      const options = { singletonKey: keyOf(item), priority: HELD_PRIORITY, db: within(tx) }
      await (await open()).update({ name, options })
    },
    work: async (concurrency, handle) => {
      const boss = await open()
      const poll = intervals?.poll ?? POLL_WITHOUT_NOTIFY
      const options = {
        localConcurrency: concurrency,
        pollingIntervalSeconds: Math.min(poll, POLL_WITHOUT_NOTIFY),
        notifyPollingIntervalSeconds: poll,
      }
      await boss.work<ItemId>(name, options, async ([message]) => {
        if (!message) return
        const { id, data, signal } = message
        await handle({ id, job: data.job, position: data.position, signal })
        // A worker that finished an item fetches the next one at once instead of at its next poll.
        for (const worker of boss.getWipData()) if (worker.count > 0) boss.notifyWorker(worker.id)
      })
    },
    pause: async () => {
      const boss = await opening?.catch(() => undefined)
      await boss?.offWork(name, { wait: false })
    },
    close: async () => {
      const boss = await opening?.catch(() => undefined)
      await boss?.stop({ graceful: false })
    },
  }
}

/** The thumbprint (RFC 7638) of the key that amounts are sealed to. */
export function thumbprintOf(key: PublicRelayKey): Promise<string> {
  return keyIdOf(key)
}

const keyOf = ({ job, position }: ItemId) => `${job}/${position}`

/** An SQL transaction in the form that pg-boss takes. Every driver returns `rows`. */
function within(tx: Database) {
  return fromDrizzle({ execute: async (query) => (await tx.execute(query as SQL)) as { rows: unknown[] } }, sql)
}

async function startBoss(
  database: () => Promise<Database>,
  name: string,
  intervals: { supervise: number } | undefined,
): Promise<PgBoss> {
  const db = await database()
  const embedded = '$client' in db && db.$client instanceof PGlite
  const listen = intervals ? openListener(db) : undefined
  const boss = new PgBoss({
    db: {
      // Gets the database for each statement, so that a replaced pool is no longer used.
      executeSql: async (text, values) => await sqlRunner(await database())(text, values),
      ...(listen && { listen }),
    },
    backend: embedded ? 'pglite' : 'postgres',
    useListenNotify: listen !== undefined,
    supervise: intervals !== undefined,
    ...(intervals && { superviseIntervalSeconds: intervals.supervise, monitorIntervalSeconds: intervals.supervise }),
    maintenanceIntervalSeconds: 600,
    flowIntervalSeconds: 3_600,
    bamIntervalSeconds: 3_600,
    schedule: false,
    reindex: false,
    monitorVacuum: false,
  })
  boss.on('error', (error) => log('error', 'queue', { failure: describeFailure(error) }))
  boss.on('warning', ({ message }) => log('info', 'queue', { failure: message }))
  try {
    await boss.start()
    await boss.createQueue(name, { policy: 'exclusive', ...OPTIONS })
    await boss.updateQueue(name, OPTIONS)
    // Warms pg-boss's cache of queues: on PGlite, a `send` in a transaction that had to do so would deadlock.
    await boss.findJobs(name, { key: 'none' })
    return boss
  } catch (error) {
    await boss.stop({ graceful: false }).catch(() => undefined)
    throw error
  }
}
