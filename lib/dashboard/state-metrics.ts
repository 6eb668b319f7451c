import { count, eq, inArray, isNotNull, ne, sql } from 'drizzle-orm'
import { BATCH_STATUSES, batches, PAYOUT_STATUSES, payouts } from '#drizzle/schema/directory.ts'
import { paymentStops, relayJobs } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { type Family, gauge } from '#lib/observability/metrics.ts'
import { listMovingBatches } from './batches.ts'
import { CHANNEL_STATES, channelState, listChannels } from './channels.ts'
import { JOB_PROGRESSED_AT } from './jobs.ts'
import { TRANSFER_VIEWS, transferRows } from './transfer-rows.ts'

const UNFINISHED_BATCHES = BATCH_STATUSES.filter((status) => status !== 'completed')
const UNFINISHED_PAYOUTS = PAYOUT_STATUSES.filter((status) => status !== 'paid' && status !== 'canceled')

/** Counts the unfinished records in each state, and returns the age of the oldest unfinished one. */
export async function stateFamilies(db: Database, now: Date): Promise<Family[]> {
  const [ofBatches, ofPayouts, channels, ages, stops] = await Promise.all([
    db
      .select({ state: batches.status, count: count() })
      .from(batches)
      .where(ne(batches.status, 'completed'))
      .groupBy(batches.status),
    db
      .select({ state: payouts.status, count: count() })
      .from(payouts)
      .where(inArray(payouts.status, UNFINISHED_PAYOUTS))
      .groupBy(payouts.status),
    listChannels(db, undefined, now),
    readAges(db, now),
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

/** A state without records is 0: a missing series would silently resolve its alerts. */
function filled(states: readonly string[], rows: readonly { state: string; count: number }[]) {
  return { state: states.map((state) => [state, rows.find((row) => row.state === state)?.count ?? 0] as const) }
}

async function readAges(db: Database, now: Date): Promise<[of: string, seconds: number][]> {
  const [[transfer], { batches: moving }, [job]] = await Promise.all([
    db
      .select({ at: sql`min(${transferRows.createdAt})`.mapWith(transferRows.createdAt) })
      .from(transferRows)
      .where(inArray(transferRows.status, [...TRANSFER_VIEWS.open])),
    listMovingBatches(db, 1),
    db
      .select({ at: sql`min(${JOB_PROGRESSED_AT})`.mapWith(relayJobs.createdAt) })
      .from(relayJobs)
      .where(eq(relayJobs.status, 'running')),
  ])
  const age = (at: Date | null | undefined) => (at ? Math.max(0, (now.getTime() - at.getTime()) / 1000) : 0)
  return [
    ['transfer', age(transfer?.at)],
    ['batch', age(moving[0]?.progressedAt)],
    ['job', age(job?.at)],
  ]
}
