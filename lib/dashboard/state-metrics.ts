import { count, inArray, isNotNull, sql } from 'drizzle-orm'
import { BATCH_STATUSES, batches, PAYOUT_STATUSES, payouts } from '#drizzle/schema/directory.ts'
import { paymentStops } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { type Family, gauge } from '#lib/observability/metrics.ts'
import { CHANNEL_STATES, channelState, listChannels } from './channels.ts'
import { isUnfinished, PROGRESS, type ProgressingRecord } from './lateness.ts'

const UNFINISHED_BATCHES = BATCH_STATUSES.filter((status) => status !== 'completed')
const UNFINISHED_PAYOUTS = PAYOUT_STATUSES.filter((status) => status !== 'paid' && status !== 'canceled')

/** Counts the unfinished records in each state, and returns the age of the oldest unfinished one. */
export async function stateFamilies(db: Database, now: Date): Promise<Family[]> {
  const [ofBatches, ofPayouts, channels, ages, stops] = await Promise.all([
    countByStatus(db, batches, UNFINISHED_BATCHES),
    countByStatus(db, payouts, UNFINISHED_PAYOUTS),
    listChannels(db, undefined, now),
    Promise.all((['transfer', 'batch', 'job'] as const).map(async (of) => [of, await ageOf(db, of, now)] as const)),
    db.$count(paymentStops, isNotNull(paymentStops.since)),
  ])
  const ofChannels = [...Map.groupBy(channels, channelState)].map(([state, own]) => ({ state, count: own.length }))
  return [
    gauge('payroll_batches', 'Batches that are not completed, by state.', filled(UNFINISHED_BATCHES, ofBatches)),
    gauge(
      'payroll_payouts',
      'Payouts that are neither paid nor canceled, by state.',
      filled(UNFINISHED_PAYOUTS, ofPayouts),
    ),
    gauge(
      'payroll_payments_stopped',
      'Tokens whose payments are stopped until the channels are reconciled with the ledger.',
      stops,
    ),
    gauge('payroll_channels', 'Channels of the relays, by state.', filled(CHANNEL_STATES, ofChannels)),
    gauge(
      'payroll_oldest_open_seconds',
      'Age of the oldest open transfer, and the longest time that a batch and a job have made no progress; 0 without any.',
      { of: ages },
    ),
  ]
}

const countByStatus = (db: Database, table: typeof batches | typeof payouts, statuses: readonly string[]) =>
  db
    .select({ state: sql<string>`${table.status}`, count: count() })
    .from(table)
    .where(inArray(sql`${table.status}`, [...statuses]))
    .groupBy(table.status)

/** A state without records is 0: a missing series would silently resolve its alerts. */
function filled(states: readonly string[], rows: readonly { state: string; count: number }[]) {
  return { state: states.map((state) => [state, rows.find((row) => row.state === state)?.count ?? 0] as const) }
}

async function ageOf(db: Database, record: ProgressingRecord, now: Date): Promise<number> {
  const { table, at } = PROGRESS[record]
  const oldest = sql`min(${at})`.mapWith(batches.createdAt)
  const [row] = await db.select({ at: oldest }).from(table).where(isUnfinished(record))
  return row?.at ? Math.max(0, (now.getTime() - row.at.getTime()) / 1000) : 0
}
